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

namespace difftape::cli {

/// What the commands share.
struct Context {
  std::vector<std::string> command_line;
  Exit exit = Exit::ok;
};

void add_train(CLI::App& app, Context& context);
void add_sweep(CLI::App& app, Context& context);
void add_report(CLI::App& app, Context& context);
void add_plan(CLI::App& app, Context& context);
void add_config(CLI::App& app, Context& context);
void add_grads(CLI::App& app, Context& context);
void add_doctor(CLI::App& app, Context& context);
void add_gradcheck(CLI::App& app, Context& context);

/// Adds `--set key=value`, which may be repeated, to a command that reads a configuration.
/// `overrides` must outlive the command.
void add_set_option(CLI::App& command, std::vector<std::string>& overrides);

/// Checks a file that a command is going to write: what exists there is replaced only if it is an
/// ordinary file with the same extension (".html") and none of the command's inputs. Throws
/// OutputError.
void require_output_file(const std::filesystem::path& out, std::string_view extension,
                         const std::vector<std::filesystem::path>& inputs = {});

/// The same for the HDF5 file of `grads`, which replaces only its own outputs.
void require_grads_file(const std::filesystem::path& out,
                        const std::vector<std::filesystem::path>& inputs);

/// Parses and runs; prints errors to stderr. What main returns.
int run(int argc, char** argv);

}  // namespace difftape::cli
