#pragma once
// Fixture that writes configuration files to a temporary folder and collects the errors of reading.

#include <unistd.h>

#include "tests/support/test.h"
#include "train/run/config/reader.h"
#include "train/study/sweep/sweep_config.h"
#include "train/system/exit.h"

namespace difftape::run {

/// Tests run in this folder, so that messages name files as a user types them.
struct ConfigFiles : testing::Test {
  ConfigFiles()
      : outside_(fs::current_path()),
        folder_(fs::temp_directory_path() / ("difftape-config-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    fs::current_path(folder_);
  }
  ~ConfigFiles() override {
    fs::current_path(outside_);
    fs::remove_all(folder_);
  }

  void write(const std::string& path, const std::string& text) {
    const auto parent = fs::path(path).parent_path();
    if (!parent.empty()) fs::create_directories(parent);
    std::ofstream(path) << text;
  }

  /// Returns the message of the Error that `f` throws, and expects its exit code to be `exit`.
  template <class F>
  static std::string message(system::Exit exit, F&& f) {
    try {
      f();
    } catch (const Error& e) {
      EXPECT_EQ(system::exit_of(e), exit) << e.what();
      return e.what();
    }
    return "no error";
  }

  /// Writes a.yaml and loads it.
  Config config(const std::string& text, const std::vector<std::string>& overrides = {}) {
    write("a.yaml", text);
    return load_config("a.yaml", overrides).config;
  }
  std::string error(const std::string& text, const std::vector<std::string>& overrides = {}) {
    write("a.yaml", text);
    return message(system::Exit::config, [&] { load_config("a.yaml", overrides); });
  }
  study::SweepConfig sweep(const std::string& text,
                           const std::vector<std::string>& overrides = {}) {
    write("s.yaml", text);
    return study::load_sweep("s.yaml", overrides);
  }
  std::string sweep_error(const std::string& text, const std::vector<std::string>& overrides = {}) {
    write("s.yaml", text);
    return message(system::Exit::config, [&] { study::load_sweep("s.yaml", overrides); });
  }

 private:
  fs::path outside_, folder_;
};

}  // namespace difftape::run
