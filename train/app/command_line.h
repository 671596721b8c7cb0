#pragma once
// Helpers for command lines, which CLI11 parses.

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/real.h"

namespace difftape::app {

/// Adds a command. Its help ends with `examples`: command lines without the program name, which
/// tests run. The first sentence of `help` has at most 70 characters.
CLI::App& add_command(CLI::App& above, const std::string& name, const std::string& help,
                      const std::vector<std::string>& examples);

/// Return why a string is rejected: it is empty, or not an integer that fits. CLI11 would read an
/// empty string as 0 and clamp large numbers.
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

/// Adds an option, "--out", or a positional argument, "CONFIG". A positional list takes all
/// remaining words; a list option takes one value each time it is given. An empty value is an
/// error. `value` must outlive parsing; the command's callback owns it.
template <class T>
CLI::Option* add_option(CLI::App& command, const std::string& name, T& value,
                        const std::string& help) {
  CLI::Option* added = command.add_option(name, value, help);
  if (kIsList<T> && name.starts_with('-'))
    added->allow_extra_args(false)->take_all();  // the next word may be an argument
  return added->check(kIsIndex<T> ? refuse_no_index : refuse_empty);
}

/// Adds an option with values separated by commas. Help shows the default if there is one.
template <class T>
CLI::Option* add_list(CLI::App& command, const std::string& name, std::vector<T>& list,
                      const std::string& help) {
  CLI::Option* added = add_option(command, name, list, help)->delimiter(',');
  return list.empty() ? added : added->capture_default_str();
}

/// Adds the argument CONFIG, a configuration file.
void add_config(CLI::App& command, std::string& path);
/// Adds `--set key=value`, which may be repeated.
void add_set(CLI::App& command, std::vector<std::string>& overrides);

/// Returns the program without its commands.
std::unique_ptr<CLI::App> make_program(const std::string& name);

/// Parses the command line and runs its command, or prints --help or --version. Throws UsageError,
/// and what the command throws.
void parse_and_run(CLI::App& program, int argc, const char* const* argv);

}  // namespace difftape::app
