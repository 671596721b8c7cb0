#pragma once
// Runs difftape as a user does: as a process of its own, in a directory of its own.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "train/system/child.h"
#include "train/system/files.h"

namespace difftape::test {

struct Outcome {
  int exit;  ///< exit code, or minus the signal that ended the process
  std::string out, err;
};

/// Under which a program runs.
struct Conditions {
  std::filesystem::path directory = {};
  std::string program = DIFFTAPE_TEST_PROGRAM;
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< added to the test's own
  std::optional<std::uint64_t> largest_file = {};  ///< bytes; writing more fails as on a full disk
  std::optional<std::uint64_t> memory = {};        ///< bytes of address space
  bool unprivileged = false;                       ///< if the test is root, the program is not
  std::string out_file = {};  ///< what it prints goes here instead of to Outcome::out
};

/// A running program. What it prints waits in a pipe of one page: a program that prints more
/// than that stands still until somebody reads. It is killed after four minutes, or at the end.
class Process {
 public:
  Process(const std::vector<std::string>& arguments, const Conditions& conditions);

  /// Reads on until what was printed holds `text`. False if it ended before.
  bool read_until(const std::string& text);
  void signal(int number) { child_->signal(number); }
  pid_t id() const { return child_->id(); }
  Outcome wait();

 private:
  system::File out_, err_;
  std::unique_ptr<system::Child> child_;
  std::string printed_;
};

inline Outcome run(const std::vector<std::string>& arguments, const Conditions& conditions = {}) {
  return Process(arguments, conditions).wait();
}

/// Expects that a program ended with 0, and returns what it printed.
std::string output(const Outcome& outcome,
                   std::source_location where = std::source_location::current());
/// Expects that it ended with `exit`, and returns its errors.
std::string error(int exit, const Outcome& outcome,
                  std::source_location where = std::source_location::current());

/// Waits until `holds()` is true, which may take two minutes on a busy machine. False if it is not
/// true then.
bool becomes_true(const std::function<bool()>& holds);

}  // namespace difftape::test
