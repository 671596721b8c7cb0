#pragma once
// What the commands of a program take, and the parser of its command line. CLI11, which parses, is
// included by parser.cpp only: it takes the compiler longer than a command.

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/real.h"

namespace difftape::app {

/// Where a value goes; its type decides what is accepted. bool: a flag without a value. A list that
/// is an argument takes every word left, as an option one value each time it is given.
using Target = std::variant<bool*, int*, Index*, double*, std::string*, std::optional<Index>*,
                            std::optional<double>*, std::vector<std::string>*, std::vector<Index>*,
                            std::vector<double>*>;

/// One option or argument of a command.
struct Option {
  std::string name;  ///< "--out"; without dashes an argument, known by its place: "CONFIG"
  Target target;     ///< must outlive the parsing; what it holds before is the default
  std::string help;
  bool required = false;
  bool show_default = false;     ///< help shows what the target holds, unless it is an empty list
  bool refuse_empty = false;     ///< an empty text is an error, which CLI11 would read as 0
  bool comma_separated = false;  ///< a list: one value may hold several items
  std::string type_name = {};    ///< what help shows for the value; empty: follows from the type
  std::optional<std::pair<int, int>> range = {};  ///< lowest and highest value accepted
  /// Of a text with dashes: what the option means alone; another word, which type_name shows, needs
  /// '=', "--resume=auto".
  std::string alone = {};
  bool* given = nullptr;  ///< set to true if the command line has this option
  /// The key of the configuration in whose place it is given, "data.path"; empty: none.
  std::string key = {};
  /// What completions offer for the value; one that ends in '=' goes on. Empty: files.
  std::function<std::vector<std::string>()> choices = {};
};

/// Whether a value follows the name: of options that are no flags.
bool takes_value(const Option& option);

/// A command. It has either `run` or further commands, one of which must be given.
struct Command {
  std::string name, help;
  std::vector<Option> options = {};
  std::function<void()> run = {};
  std::vector<Command> commands = {};
  bool hidden = false;  ///< left out of the help
  /// Command lines at the end of the help, without the program: "train my.yaml". Tests run them.
  std::vector<std::string> examples = {};
};

struct Program {
  std::string name, help;
  std::string footer;   ///< the end of every help
  std::string version;  ///< what --version prints
  std::vector<Command> commands;
  std::string start = {};  ///< the line of the help of the program that says how to begin
  /// For commands with --set: what to do instead of giving an option that is unknown, and its
  /// value, "write --set train.steps=20"; empty: nothing is known of it. `write` says how the
  /// command is given a key and its value.
  using Write = std::function<std::string(const std::string& key, const std::string& value)>;
  std::function<std::string(const std::string& option, const std::string& value,
                            const Write& write)>
      advice = {};
};

/// A configuration file, the argument CONFIG.
Option config_argument(std::string& path);
/// `--set key=value`, which may be repeated.
Option set_option(std::vector<std::string>& overrides);
/// An option with several values, separated by commas. Help shows the default if there is one.
Option list_option(const std::string& name, Target list, const std::string& help);

/// Parses the command line and runs its command. False if there was only text to print: --help or
/// --version. Throws UsageError, and what the command throws.
bool parse_and_run(const Program& program, int argc, char** argv);

/// The version of CLI11.
std::string parser_version();

}  // namespace difftape::app
