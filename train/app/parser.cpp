#include "train/app/parser.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <limits>
#include <span>

#include "core/error.h"
#include "train/run/config/fields.h"
#include "train/system/suggest.h"

namespace difftape::app {

namespace {

std::string refuse_empty(const std::string& text) {
  return text.empty() ? "need a value, not an empty text" : "";
}

/// CLI11 takes the nearest number that fits, and nothing as 0.
std::string refuse_no_index(const std::string& text) {
  Index number = 0;
  const auto end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (stop != end || text.empty()) return fmt::format("need an integer in digits, not '{}'", text);
  return error == std::errc()
             ? ""
             : fmt::format("need an integer of at most {}", std::numeric_limits<Index>::max());
}

template <class T>
constexpr bool is_list = false;
template <class T>
constexpr bool is_list<std::vector<T>> = true;

template <class T>
CLI::Option* add_target(CLI::App& app, const Option& option, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return app.add_flag(option.name, value, option.help);
  } else {
    if constexpr (std::is_same_v<T, std::string>) {
      if (!option.alone.empty())
        return app.add_flag(option.name + "{" + option.alone + "}", value, option.help);
    }
    CLI::Option* added = app.add_option(option.name, value, option.help);
    if constexpr (is_list<T>) {
      if (option.name.starts_with('-')) {
        added->allow_extra_args(false)->take_all();  // what follows the value may be an argument
      }
      if (value.empty()) return added;
    }
    return option.show_default ? added->capture_default_str() : added;
  }
}

void add_option(CLI::App& app, const Option& option) {
  CLI::Option* added =
      std::visit([&](auto* value) { return add_target(app, option, *value); }, option.target);
  if (option.comma_separated) added->delimiter(',');
  if (option.refuse_empty) added->check(refuse_empty);
  if (std::holds_alternative<Index*>(option.target) ||
      std::holds_alternative<std::optional<Index>*>(option.target) ||
      std::holds_alternative<std::vector<Index>*>(option.target))
    added->check(refuse_no_index);
  if (option.range) added->check(CLI::Range(option.range->first, option.range->second));
  if (!option.type_name.empty() && option.alone.empty()) added->type_name(option.type_name);
  added->required(option.required);
  if (option.given != nullptr) added->each([given = option.given](const auto&) { *given = true; });
}

void add_command(CLI::App& app, const Program& program, const Command& command) {
  CLI::App* added = app.add_subcommand(command.name, command.help);
  for (const Option& option : command.options) add_option(*added, option);
  for (const Command& below : command.commands) add_command(*added, program, below);
  if (!command.commands.empty()) added->require_subcommand(1);
  if (command.run) added->callback(command.run);
  if (command.hidden) added->group("");
  if (command.examples.empty()) return;
  const std::string each = fmt::format("\n  {} ", program.name);
  added->footer(
      fmt::format("Examples:{}{}\n\n{}", each, fmt::join(command.examples, each), program.footer));
}

/// What to write for the first of the words that a command does not know, or nothing: values of
/// the configuration go through --set, and arguments have no dashes.
std::string other_habit(const CLI::App& command, const Program& program,
                        std::span<const Option> options, const std::vector<std::string>& unknown) {
  const std::string word = unknown.front().substr(0, unknown.front().find('='));
  const bool has_value = word.size() < unknown.front().size();
  if (!word.starts_with('-') && !has_value) return "";
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (option->get_positional() && "--" + CLI::detail::to_lower(name) == word)
      return fmt::format("; {} is an argument: write it without {}", name, word);
  }
  if (!program.advice || command.get_option_no_throw("--set") == nullptr) return "";
  std::string value = has_value ? unknown.front().substr(word.size() + 1) : "";
  if (!has_value && unknown.size() > 1 && !unknown[1].starts_with('-')) value = unknown[1];
  const auto write = [&](const std::string& key, const std::string& text) {
    const auto own = std::ranges::find(options, key, &Option::key);
    return own != options.end() ? fmt::format("{} {}", own->name, text)
                                : fmt::format("--set {}={}", key, text);
  };
  const std::string advice = program.advice(word, value, write);
  return advice.empty() ? "" : "; " + advice;
}

/// What is wrong with a command, in words that name it: CLI11 only counts what it does not know.
std::string usage_problem(CLI::App& command, const Program& program,
                          std::span<const Option> described, const CLI::ParseError& error) {
  std::vector<std::string> commands, options;
  for (const CLI::App* sub : command.get_subcommands(nullptr)) {
    if (!sub->get_group().empty()) commands.push_back(sub->get_name());
  }
  for (const CLI::Option* option : command.get_options()) options.push_back(option->get_name());
  const std::vector<std::string> unknown = command.remaining();
  if (unknown.empty()) {
    return commands.empty() ? error.what()
                            : fmt::format("give a command: {}", fmt::join(commands, ", "));
  }
  const std::string& word = unknown.front();
  const std::string habit = other_habit(command, program, described, unknown);
  if (word.starts_with('-')) {
    return fmt::format("unknown option '{}'{}", word,
                       habit.empty() ? system::did_you_mean(word, options) : habit);
  }
  if (!commands.empty()) {
    return fmt::format("unknown command '{}'{}", word, system::did_you_mean(word, commands));
  }
  return fmt::format("one argument too many: '{}'{}", word, habit);
}

/// What is wrong with the command line, and where to read more.
UsageError usage_error(CLI::App& app, const Program& program, const CLI::ParseError& error) {
  CLI::App* command = &app;
  std::string name = app.get_name();
  std::span<const Command> commands = program.commands;
  std::span<const Option> options;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
    const auto described = std::ranges::find(commands, command->get_name(), &Command::name);
    options = described->options;
    commands = described->commands;
  }
  return UsageError(fmt::format("{}\n'{} --help' says more",
                                usage_problem(*command, program, options, error), name));
}

}  // namespace

bool takes_value(const Option& option) {
  return option.name.starts_with('-') && !std::holds_alternative<bool*>(option.target) &&
         option.alone.empty();
}

Option config_argument(std::string& path) {
  return {.name = "CONFIG", .target = &path, .help = "Configuration file (YAML)", .required = true};
}

Option set_option(std::vector<std::string>& overrides) {
  return {.name = "--set",
          .target = &overrides,
          .help = "Override one key of 'config keys' with a YAML value; repeat for more",
          .type_name = "KEY=VALUE",
          .choices = [] {
            std::vector<std::string> keys;
            for (const run::Field& field : run::fields()) keys.push_back(field.key + "=");
            return keys;
          }};
}

Option list_option(const std::string& name, Target list, const std::string& help) {
  return {.name = name,
          .target = list,
          .help = help,
          .show_default = true,
          .refuse_empty = true,
          .comma_separated = true};
}

bool parse_and_run(const Program& program, int argc, char** argv) {
  CLI::App app(program.help, program.name);
  app.footer(program.start + program.footer);
  app.require_subcommand(1);
  app.set_version_flag("--version", program.version);
  for (const Command& command : program.commands) add_command(app, program, command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw usage_error(app, program, error);
    app.exit(error);  // --help, --version
    return false;
  }
  return true;
}

std::string parser_version() { return CLI11_VERSION; }

}  // namespace difftape::app
