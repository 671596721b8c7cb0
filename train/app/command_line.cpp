#include "train/app/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <regex>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/platform.h"
#include "train/run/config/fields.h"
#include "train/system/number.h"
#include "train/system/suggest.h"

namespace difftape::app {
namespace {

constexpr const char* kStart =
    std::is_same_v<real, float> ? "sweep configs/sweeps/quickstart.yaml" : "gradcheck";
constexpr const char* kExitCodes =
    "Exit codes:\n"
    "  0 ok; 1 a check failed; 64 usage; 65 bad data or checkpoint; 66 input missing;\n"
    "  74 cannot write; 75 stopped early, resumable; 78 config error; 86 training diverged,\n"
    "  recorded as a result; 130/143 after SIGINT/SIGTERM, with a checkpoint written.";

/// Keys that an option name matches in full or in the last part. If there are none, the key that
/// has this name in another framework.
struct MeantKeys {
  std::vector<std::string> keys;
  const run::FrameworkAlias* foreign = nullptr;  ///< null if there are keys
};
MeantKeys keys_called(const std::string& name) {
  MeantKeys meant;
  for (const run::Field& field : run::fields())
    if (field.key == name || run::last_part(field.key) == name) meant.keys.push_back(field.key);
  if (meant.keys.empty()) meant.foreign = run::find_framework_alias(name, false);
  return meant;
}

/// Returns the option that sets a key; eval has a separate option for its data.
std::string given_to(const CLI::App& command, const std::string& key, const std::string& value) {
  const bool own = key == "data.path" && command.get_option_no_throw("--data") != nullptr;
  return own ? fmt::format("--data {}", value) : fmt::format("--set {}={}", key, value);
}

/// Returns advice if an unknown option is the name of a key, here or in another framework, or
/// `--arm`; otherwise an empty string.
std::string advice_for_option(const CLI::App& command, const std::string& option,
                              const std::string& value) {
  const auto begin = option.find_first_not_of('-');
  if (begin == option.npos) return "";
  const std::string name = run::normalized(option.substr(begin));
  const std::string shown = value.empty() ? "VALUE" : value;
  if (name == "arm") {  // run.arm only labels a run
    return fmt::format(
        "; 'difftape sweep SWEEP --arms {0}' trains the runs of an arm, 'difftape config show "
        "SWEEP --arm {0} > {0}.yaml' makes a configuration of it",
        shown);
  }
  const auto [keys, foreign] = keys_called(name);
  if (keys.size() == 1) return "; write " + given_to(command, keys.front(), shown);
  if (foreign == nullptr) return "";
  const std::string key(foreign->key);
  if (key.empty()) return fmt::format("; {}", foreign->note);
  if (foreign->note.empty()) return "; write " + given_to(command, key, shown);
  // The value may mean something else in the other framework, so it is not repeated.
  return fmt::format("; {}; write {}", foreign->description(), given_to(command, key, "VALUE"));
}

/// Returns advice for the first word that a command does not know, or nothing: --set sets values
/// of the configuration, and arguments have no dashes.
std::string other_habit(const CLI::App& command, const std::vector<std::string>& unknown) {
  const std::string word = unknown.front().substr(0, unknown.front().find('='));
  const bool has_value = word.size() < unknown.front().size();
  if (!word.starts_with('-') && !has_value) return "";
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (option->get_positional() && "--" + CLI::detail::to_lower(name) == word)
      return fmt::format("; {} is an argument: write it without {}", name, word);
  }
  if (command.get_option_no_throw("--set") == nullptr) return "";
  std::string value = has_value ? unknown.front().substr(word.size() + 1) : "";
  if (!has_value && unknown.size() > 1 && !unknown[1].starts_with('-')) value = unknown[1];
  return advice_for_option(command, word, value);
}

/// Returns an error of CLI11 in the wording of this program.
std::string reworded(const std::string& error) {
  static const std::pair<std::regex, const char*> kForms[] = {
      {std::regex("(.*): At Most 1 required but received (\\d+)"),
       "$1: given $2 times, but must be given once; remove all but one"},
      {std::regex("(.*): 1 required .* missing"), "$1: a value is missing; give it after $1"},
      {std::regex("(.*): Value (.*) not in range (.*) to (.*)"),
       "$1: expected a number from $3 to $4, got '$2'"},
      {std::regex("Could not convert: (.*) = (.*)"), "$1: expected a number, got '$2'"}};
  for (const auto& [form, words] : kForms)
    if (std::regex_match(error, form)) return std::regex_replace(error, form, words);
  return error;
}

/// Returns what is wrong with a command and names unknown words, which CLI11 only counts.
std::string usage_problem(const CLI::App& command, const CLI::ParseError& error) {
  std::vector<std::string> commands, options;
  for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; }))
    if (!sub->get_group().empty()) commands.push_back(sub->get_name());
  for (const CLI::Option* option : command.get_options()) options.push_back(option->get_name());
  const std::vector<std::string> unknown = command.remaining();
  if (unknown.empty()) {
    return commands.empty()
               ? reworded(error.what())
               : fmt::format("a command is missing; give one of {}", fmt::join(commands, ", "));
  }
  const std::string& word = unknown.front();
  const std::string habit = other_habit(command, unknown);
  if (word.starts_with('-')) {
    return fmt::format("unknown option '{}'{}", word,
                       habit.empty() ? system::did_you_mean(word, options) : habit);
  }
  if (!commands.empty())
    return fmt::format("unknown command '{}'{}", word, system::did_you_mean(word, commands));
  return fmt::format("unexpected argument '{}'{}", word, habit);
}

/// Returns the error of a command line with a reference to the help.
UsageError usage_error(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App* command = &program;
  std::string name = program.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  return UsageError(fmt::format("{}\nsee '{} --help'", usage_problem(*command, error), name));
}

}  // namespace

CLI::App& add_command(CLI::App& above, const std::string& name, const std::string& help,
                      const std::vector<std::string>& examples) {
  const CLI::App* program = &above;
  while (program->get_parent() != nullptr) program = program->get_parent();
  if (above.get_parent() != nullptr) above.require_subcommand(1);
  CLI::App* added = above.add_subcommand(name, help);
  const std::string each = fmt::format("\n  {} ", program->get_name());
  added->footer(fmt::format("Examples:{}{}\n\n{}", each, fmt::join(examples, each), kExitCodes));
  return *added;
}

std::string refuse_empty(const std::string& text) {
  return text.empty() ? "expected a value, got an empty string" : "";
}

std::string refuse_no_index(const std::string& text) {
  if (text.empty()) return refuse_empty(text);
  const bool digits = text.find_first_not_of("0123456789", text.starts_with('-')) == text.npos;
  if (!digits || text == "-") return fmt::format("expected an integer, got '{}'", text);
  return system::read_number<Index>(text)
             ? ""
             : fmt::format("expected an integer of at most {}, got '{}'",
                           std::numeric_limits<Index>::max(), text);
}

void add_config(CLI::App& command, std::string& path) {
  add_option(command, "CONFIG", path,
             "Configuration file (YAML), or a run directory to use its configuration")
      ->required();
}

void add_set(CLI::App& command, std::vector<std::string>& overrides) {
  add_option(command, "--set", overrides,
             "Override one key of 'config keys'; the value is taken as it is, [a, b] is a list; "
             "repeatable")
      ->type_name("KEY=VALUE");
}

std::unique_ptr<CLI::App> make_program(const std::string& name) {
  const BuildInfo build = build_info();
  auto program = std::make_unique<CLI::App>(
      "difftape: find out which attention mechanism trains stably", name);
  program->footer(fmt::format("Start with:\n  {} {}\n\n{}", name, kStart, kExitCodes));
  program->require_subcommand(1);
  program->set_version_flag("--version",
                            fmt::format("difftape {} ({}, {}, {})", build.version, build.commit,
                                        build.precision, build.compiler));
  return program;
}

void parse_and_run(CLI::App& program, int argc, const char* const* argv) {
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw usage_error(program, error);
    program.exit(error);  // --help, --version
  }
}

}  // namespace difftape::app
