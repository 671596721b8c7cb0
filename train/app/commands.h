#pragma once
// The commands of `difftape`, one file each. Each function adds its command to the parser; the
// command runs in the parser's callback, prints to stdout and sets `exit`, which must outlive the
// parser. Errors are thrown; main prints them and returns their exit code.

#include <CLI/CLI.hpp>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "train/system/exit.h"

namespace difftape::app {

/// What the commands share.
struct Context {
  std::vector<std::string> command_line;
  system::Exit exit = system::Exit::ok;
};

void add_train(CLI::App& app, Context& context);
void add_sweep(CLI::App& app, Context& context);
/// The command that a sweep starts for each of its runs; not in the help.
void add_worker(CLI::App& app, Context& context);
void add_report(CLI::App& app, Context& context);
void add_plan(CLI::App& app, Context& context);
void add_analyze(CLI::App& app, Context& context);
void add_config(CLI::App& app, Context& context);
void add_grads(CLI::App& app, Context& context);
void add_doctor(CLI::App& app, Context& context);
void add_gradcheck(CLI::App& app, Context& context);
void add_replay(CLI::App& app, Context& context);

/// Adds `--set key=value`, which may be repeated, to a command that reads a configuration.
/// `overrides` must outlive the command.
void add_set_option(CLI::App& command, std::vector<std::string>& overrides);

/// Refuses an empty text, which CLI11 would read as 0.
inline std::string refuse_empty(const std::string& text) {
  return text.empty() ? "need a value, not an empty text" : "";
}

/// Adds an option with several values, separated by commas. `values` must outlive the command; what
/// it holds is the default that help shows.
template <class T>
CLI::Option* add_list_option(CLI::App& command, const std::string& name, std::vector<T>& values,
                             const std::string& description) {
  CLI::Option* option = command.add_option(name, values, description)
                            ->delimiter(',')
                            ->allow_extra_args(false)  // what follows may be CONFIG
                            ->take_all()
                            ->check(refuse_empty);
  return values.empty() ? option : option->capture_default_str();
}

/// Checks a file that a command is going to write: what exists there is replaced only if it is an
/// ordinary file with the same extension (".html") and none of the command's inputs. Throws
/// OutputError.
void require_output_file(const std::filesystem::path& out, std::string_view extension,
                         const std::vector<std::filesystem::path>& inputs = {});

/// The same for the HDF5 file of a command that replaces only its own outputs, known by the objects
/// they hold, and for its CSV file, known by its first line. The directory must be there.
void require_h5_output(const std::filesystem::path& out, std::string_view command,
                       const std::vector<std::string>& objects,
                       const std::vector<std::filesystem::path>& inputs = {});
void require_csv_output(const std::filesystem::path& out, std::string_view command,
                        std::string_view header);

/// The HDF5 file of `grads`.
void require_grads_file(const std::filesystem::path& out,
                        const std::vector<std::filesystem::path>& inputs);

/// Parses and runs; prints errors to stderr. What main returns.
int run(int argc, char** argv);

}  // namespace difftape::app
