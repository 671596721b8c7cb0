#pragma once
// The commands of `difftape`, one file each. Each function adds its command to the parser; the
// command runs in the parser's callback, prints to stdout and sets `exit`, which must outlive the
// parser. Errors are thrown; main prints them and returns their exit code.

#include <CLI/CLI.hpp>

#include <string>
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

/// Parses and runs; prints errors to stderr. What main returns.
int run(int argc, char** argv);

}  // namespace difftape::cli
