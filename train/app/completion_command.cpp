// Generates bash completions from the commands. The script keeps the command typed so far as a
// string such as "difftape config show". It completes values after an option and after KEY=,
// options after a dash, and otherwise commands, values of the argument or, without these, files.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cctype>

#include "train/app/commands.h"
#include "train/run/config/fields.h"
#include "train/run/exchange/export.h"

namespace difftape::app {
namespace {

/// Returns the values of an option or argument, separated by spaces; empty: files. A value that
/// ends in '=' is incomplete.
std::string values_of(const std::string& option) {
  std::vector<std::string> values;
  if (option == "KIND") values = attention_kinds();
  if (option == "--format") values = names<run::ExportFormat>();
  if (option == "--set" || option == "PREFIX")
    for (const run::Field& field : run::fields())
      values.push_back(field.key + (option == "--set" ? "=" : ""));
  return fmt::format("{}", fmt::join(values, " "));
}

/// Branches of four `case` statements over the words so far: for commands, for their arguments,
/// for their options with values, and for keys with a list of values.
struct Branches {
  std::vector<std::string> paths;
  std::string commands, arguments, options, keys;
};

void add_branches(Branches& to, const CLI::App& command, const std::string& path) {
  std::vector<std::string> below, options;
  for (const CLI::App* each : command.get_subcommands([](const CLI::App*) { return true; })) {
    if (each->get_group().empty()) continue;
    below.push_back(each->get_name());
    to.paths.push_back(fmt::format("'{} {}'", path, each->get_name()));
    add_branches(to, *each, path + " " + each->get_name());
  }
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name(), values = values_of(name);
    if (option->get_positional()) {
      if (!values.empty()) to.arguments += fmt::format("    '{}') values='{}' ;;\n", path, values);
      continue;
    }
    options.push_back(name);
    if (option->get_expected_max() > 0)
      to.options += fmt::format("    '{} {}') values='{}' ;;\n", path, name, values);
  }
  to.commands += fmt::format("    '{}') commands='{}' options='{}' ;;\n", path,
                             fmt::join(below, " "), fmt::join(options, " "));
}

/// Converts a name to the name of a shell function.
std::string function_name(std::string name) {
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

std::string bash(const CLI::App& program) {
  const std::string& name = program.get_name();
  Branches branches;
  add_branches(branches, program, name);
  for (const run::Field& field : run::fields())
    if (const auto& choices = field.spec.constraint.names; !choices.empty())
      branches.keys +=
          fmt::format("    '{}') values='{}' ;;\n", field.key, fmt::join(choices, " "));
  return fmt::format(
      R"(_{1}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  local at={0} word key= commands options values
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$at $word" in {2}) at="$at $word" ;; esac
  done
  case "$at" in
{3}  esac
  case "$at" in
{4}  esac
  [[ $current == -* ]] && commands=$options values=
  case "$at $before" in
{5}  esac
  [[ $before == = ]] && key=${{COMP_WORDS[COMP_CWORD-2]}}
  [[ $current == = ]] && key=$before current=
  case "$key" in
{6}  esac
  [[ $values == *= ]] && compopt -o nospace 2>/dev/null
  COMPREPLY=($(compgen -W "${{values:-$commands}}" -- "$current"))
}}
complete -o default -F _{1} {0}
)",
      name, function_name(name), fmt::join(branches.paths, "|"), branches.commands,
      branches.arguments, branches.options, branches.keys);
}

}  // namespace

void completion_command(CLI::App& program, Context&) {
  CLI::App& command =
      add_command(program, "completion", "Print shell completions", {"completion bash"});
  add_command(command, "bash", "Print completions for bash", {"completion bash"})
      .callback([&program] { fmt::print("{}", bash(program)); });
}

}  // namespace difftape::app
