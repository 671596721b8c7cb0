// The manual page, made from the commands themselves, in the macros of man(7).
#include <fmt/core.h>

#include "train/app/commands.h"

namespace difftape::app {

namespace {

/// Text as roff reads it: a minus that can be copied, no escapes, no line that is a request.
std::string plain(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '-') {
      result += "\\-";
    } else if (text[i] == '\\') {
      result += "\\e";
    } else if (text[i] == '\n') {
      result += text.substr(i).starts_with("\n\n") ? "\n" : "\n\\&";  // an empty line stays one
    } else {
      result += text[i];
    }
  }
  return "\\&" + result;
}

/// "--out TEXT", "--resume[=auto]", "CONFIG"
std::string usage_of(const Option& option) {
  if (!option.name.starts_with('-')) return option.name;
  if (!option.alone.empty()) return fmt::format("{}[={}]", option.name, option.type_name);
  if (!takes_value(option)) return option.name;
  return option.name + " " + (option.type_name.empty() ? "VALUE" : option.type_name);
}

std::string synopsis(const std::string& path, const Command& command) {
  std::string text = path;
  for (const Option& option : command.options) {
    const std::string one = usage_of(option);
    text += option.required ? " " + one : " [" + one + "]";
  }
  return text;
}

void add_examples(std::string& page, const std::string& program, const Command& command) {
  if (command.examples.empty()) return;
  page += ".PP\nFor example:\n.nf\n";
  for (const std::string& example : command.examples) page += plain(program + " " + example) + "\n";
  page += ".fi\n";
}

void add_command(std::string& page, const std::string& before, const Command& command) {
  if (command.hidden) return;
  const std::string path = before + " " + command.name;
  if (command.commands.empty()) {
    page += fmt::format(".SS {}\n{}\n.PP\n{}.\n", plain(path), plain(synopsis(path, command)),
                        plain(command.help));
    for (const Option& option : command.options) {
      page += fmt::format(".TP\n{}\n{}.\n", plain(usage_of(option)), plain(option.help));
    }
    add_examples(page, path.substr(0, path.find(' ')), command);
  }
  for (const Command& below : command.commands) add_command(page, path, below);
}

std::string manual(const Program& program) {
  std::string page = fmt::format(
      ".TH {} 1 \"\" \"{}\"\n.ad l\n.nh\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{} COMMAND "
      "[ARGUMENTS]\n"
      ".SH COMMANDS\n",
      program.name, plain(program.version), plain(program.name),
      plain(program.help.substr(program.help.find(": ") + 2)), plain(program.name));
  for (const Command& command : program.commands) add_command(page, program.name, command);
  return page + fmt::format(".SH NOTES\n{}\n", plain(program.footer));
}

}  // namespace

Command man_command(Context& context) {
  return {.name = "man",
          .help = "Print the manual page, for man(1)",
          .run = [&context] { fmt::print("{}", manual(*context.program)); },
          .examples = {"man"}};
}

}  // namespace difftape::app
