#pragma once
// What the commands share about the command line, which CLI11 parses.

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/real.h"

namespace difftape::app {

/// Adds a command. Its help ends in `examples`, command lines without the program, which tests run.
CLI::App& add_command(CLI::App& above, const std::string& name, const std::string& help,
                      const std::vector<std::string>& examples);

/// Why a text is not accepted: it is empty, or not an integer in digits. CLI11 reads nothing as 0,
/// and takes the nearest number that fits.
std::string refuse_empty(const std::string& text);
std::string refuse_no_index(const std::string& text);

template <class T>
inline constexpr bool kIsList = false;
template <class T>
inline constexpr bool kIsList<std::vector<T>> = true;
template <class T>
inline constexpr bool kIsIndex =
    std::is_same_v<T, Index> || std::is_same_v<T, std::optional<Index>> ||
    std::is_same_v<T, std::vector<Index>>;

/// Adds an option, "--out", or an argument, known by its place, "CONFIG". A list that is an
/// argument takes every word left, as an option one value each time it is given. `value` must
/// outlive the parsing: a command's callback owns it.
template <class T>
CLI::Option* add_option(CLI::App& command, const std::string& name, T& value,
                        const std::string& help) {
  CLI::Option* added = command.add_option(name, value, help);
  if (kIsList<T> && name.starts_with('-'))
    added->allow_extra_args(false)->take_all();  // what follows the value may be an argument
  if (kIsIndex<T>) added->check(refuse_no_index);
  return added;
}

/// An option with several values, separated by commas. Help shows the default if there is one.
template <class T>
CLI::Option* add_list(CLI::App& command, const std::string& name, std::vector<T>& list,
                      const std::string& help) {
  CLI::Option* added = add_option(command, name, list, help)->delimiter(',')->check(refuse_empty);
  return list.empty() ? added : added->capture_default_str();
}

/// A configuration file, the argument CONFIG.
void add_config(CLI::App& command, std::string& path);
/// `--set key=value`, which may be repeated.
void add_set(CLI::App& command, std::vector<std::string>& overrides);

/// The program without its commands.
std::unique_ptr<CLI::App> make_program(const std::string& name);

/// Parses the command line and runs its command. False if there was only text to print: --help or
/// --version. Throws UsageError, and what the command throws.
bool parse_and_run(CLI::App& program, int argc, const char* const* argv);

}  // namespace difftape::app
