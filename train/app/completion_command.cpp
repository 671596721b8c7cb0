// Completions for shells, made from the commands themselves. Each script follows the words typed so
// far down the commands, as the text "difftape config show", and offers what that command has:
// after an option the values that it can have, options after a dash, otherwise commands, values of
// the argument or, where there are none, files.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cctype>
#include <map>

#include "train/app/commands.h"

namespace difftape::app {

namespace {

/// What can be typed after a command: a word and what it means.
struct Offer {
  std::string word, help;
  bool takes_value = false;
  std::string values = {};  ///< of an option, separated by spaces; empty: files
};
struct Place {
  std::string path;  ///< "difftape config"
  std::vector<Offer> commands, options;
  std::string values = {};  ///< of the argument
};

std::string values_of(const Option& option) {
  return option.choices ? fmt::format("{}", fmt::join(option.choices(), " ")) : "";
}

void add_places(std::vector<Place>& places, const std::string& path,
                const std::vector<Command>& commands, const std::vector<Option>& options) {
  Place place{path, {}, {}};
  for (const Command& command : commands) {
    if (!command.hidden) place.commands.push_back({command.name, command.help});
  }
  for (const Option& option : options) {
    if (option.name.starts_with('-')) {
      place.options.push_back({option.name, option.help, takes_value(option), values_of(option)});
    } else {
      place.values += values_of(option);
    }
  }
  place.options.push_back({"--help", "Print this help message and exit"});
  places.push_back(std::move(place));
  for (const Command& command : commands) {
    if (!command.hidden)
      add_places(places, path + " " + command.name, command.commands, command.options);
  }
}

std::vector<Place> places_of(const Program& program) {
  std::vector<Place> places;
  add_places(places, program.name, program.commands, {});
  places.front().options.push_back({"--version", "Print the version and exit"});
  return places;
}

/// In single quotes of a POSIX shell.
std::string in_quotes(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result += c;
    }
  }
  return result + "'";
}

/// A name as functions of shells are called.
std::string function_name(std::string name) {
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

/// The first sentence of a help text, as far as a colon or a semicolon.
std::string brief(const std::string& help) {
  const std::string first = help.substr(0, help.find_first_of(":;("));
  return first.substr(0, first.find_last_not_of(' ') + 1);
}

std::string words_of(const std::vector<Offer>& offers) {
  std::vector<std::string> words;
  for (const Offer& offer : offers) words.push_back(offer.word);
  return fmt::format("{}", fmt::join(words, " "));
}

/// Every path but the first, as alternatives of a `case`.
std::string paths_below(const std::vector<Place>& places, const char* separator) {
  std::vector<std::string> paths;
  for (size_t i = 1; i < places.size(); ++i) paths.push_back(in_quotes(places[i].path));
  return fmt::format("{}", fmt::join(paths, separator));
}

/// Values, with the places that they are offered at: "difftape train --set", of an argument
/// "difftape init".
std::map<std::string, std::vector<std::string>> places_by_values(const std::vector<Place>& places,
                                                                 bool of_options) {
  std::map<std::string, std::vector<std::string>> found;
  for (const Place& place : places) {
    if (!of_options && !place.values.empty()) found[place.values].push_back(in_quotes(place.path));
    for (const Offer& option : place.options) {
      if (of_options && option.takes_value)
        found[option.values].push_back(in_quotes(place.path + " " + option.word));
    }
  }
  return found;
}

/// Branches of a `case` over places, "'difftape init') commands='softmax diff_v1' ;;": `before` and
/// `after` stand around the values.
std::string branches(const std::vector<Place>& places, bool of_options, const char* before,
                     const char* after) {
  std::string text;
  for (const auto& [values, at] : places_by_values(places, of_options))
    text += fmt::format("    {}) {}{}{} ;;\n", fmt::join(at, "|"), before, values, after);
  return text;
}

std::string bash(const std::string& name, const std::vector<Place>& places) {
  std::string cases;
  for (const Place& place : places) {
    cases += fmt::format("    {}) commands='{}' options='{}' ;;\n", in_quotes(place.path),
                         words_of(place.commands), words_of(place.options));
  }
  return fmt::format(
      R"(_{1}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  local at={0} word commands options values
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
  [[ $values == *= ]] && compopt -o nospace 2>/dev/null
  COMPREPLY=($(compgen -W "${{values:-$commands}}" -- "$current"))
}}
complete -o default -F _{1} {0}
)",
      name, function_name(name), paths_below(places, "|"), cases,
      branches(places, false, "values='", "'"), branches(places, true, "values='", "'"));
}

std::string zsh(const std::string& name, const std::vector<Place>& places) {
  const auto described = [](const std::vector<Offer>& offers) {
    std::vector<std::string> items;
    for (const Offer& offer : offers) {
      items.push_back(in_quotes(offer.word + ":" + brief(offer.help)));
    }
    return fmt::format("{}", fmt::join(items, " "));
  };
  std::string cases;
  for (const Place& place : places) {
    cases += fmt::format("  ({}) commands=({}) options=({}) ;;\n", in_quotes(place.path),
                         described(place.commands), described(place.options));
  }
  return fmt::format(
      R"(#compdef {0}
local current=$words[CURRENT] before=$words[CURRENT-1] at={0} word
local -a commands options values
for word in ${{words[2,CURRENT-1]}}; do
  case "$at $word" in ({1}) at="$at $word" ;; esac
done
case "$at" in
{2}esac
case "$at" in
{3}esac
[[ $current == -* ]] && values=()
case "$at $before" in
{4}esac
if [[ $values[1] == *= ]]; then
  compadd -S '' -a values
elif (( $#values )); then
  compadd -a values
elif [[ $current == -* ]]; then
  _describe option options
elif (( $#commands )); then
  _describe command commands
else
  _files
fi
)",
      name, paths_below(places, "|"), cases, branches(places, false, "values=(", ")"),
      branches(places, true, "values=(", ")"));
}

std::string fish(const std::string& name, const std::vector<Place>& places) {
  std::string text = fmt::format(
      R"(function __{1}_at
  set -l at {0}
  for word in (commandline -opc)[2..]
    contains -- "$at $word" {2}; and set at "$at $word"
  end
  test "$at" = "$argv"
end
)",
      name, function_name(name), paths_below(places, " "));
  for (const Place& place : places) {
    const std::string here =
        fmt::format("complete -c {} -n '__{}_at {}'", name, function_name(name), place.path);
    for (const Offer& offer : place.commands) {
      text += fmt::format("{} -f -a {} -d {}\n", here, offer.word, in_quotes(brief(offer.help)));
    }
    if (!place.values.empty()) text += fmt::format("{} -f -a {}\n", here, in_quotes(place.values));
    for (const Offer& offer : place.options) {
      const std::string values =
          offer.values.empty() ? "" : fmt::format("-f -a {} ", in_quotes(offer.values));
      text += fmt::format("{} -l {} {}{}-d {}\n", here, offer.word.substr(2),
                          offer.takes_value ? "-r " : "", values, in_quotes(brief(offer.help)));
    }
  }
  return text;
}

using Script = std::string (*)(const std::string& name, const std::vector<Place>& places);

}  // namespace

Command completion_command(Context& context) {
  constexpr std::pair<const char*, Script> kShells[] = {
      {"bash", bash}, {"zsh", zsh}, {"fish", fish}};
  Command command{.name = "completion",
                  .help = "Print the completions of a shell",
                  .examples = {"completion bash"}};
  for (const auto& [shell, script] : kShells) {
    command.commands.push_back(
        {.name = shell,
         .help = fmt::format("For {}", shell),
         .run =
             [script = script, &context] {
               fmt::print("{}", script(context.program->name, places_of(*context.program)));
             },
         .examples = {fmt::format("completion {}", shell)}});
  }
  return command;
}

}  // namespace difftape::app
