#include "train/app/commands.h"

#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "core/platform.h"
#include "train/run/records/h5.h"
#include "train/system/files.h"

namespace difftape::app {

namespace fs = std::filesystem;

namespace {

OutputError no_output_of(const fs::path& out, std::string_view command) {
  return OutputError(
      fmt::format("{} already exists and is not an output of {}; choose another name with --out",
                  out.string(), command));
}

}  // namespace

void require_directory_of(const fs::path& out) {
  if (!out.has_parent_path() || system::is_folder(out.parent_path())) return;
  throw OutputError(fmt::format("cannot write {}: {} is not an existing directory; create it first",
                                out.string(), out.parent_path().string()));
}

void outlive_reader() { std::signal(SIGPIPE, SIG_IGN); }

void print_to_stderr(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool c1 = i > 0 && (text[i - 1] & 0xff) == 0xc2 && c >= 0x80 && c < 0xa0;
    if ((c < ' ' && c != '\n') || c == 127 || c1) text[i] = '?';
    if (c1) text[i - 1] = '?';
  }
  std::fputs(text.c_str(), stderr);
}

void say(const std::string& note) { print_to_stderr("difftape: " + note + "\n"); }

void warn_if_slower() {
  if (const std::string reason = slower_level_reason(); !reason.empty()) say("warning: " + reason);
}

void require_h5_output(const fs::path& out, std::string_view command,
                       const std::vector<std::string>& objects,
                       const std::vector<fs::path>& inputs) {
  throw_if<UsageError>(out.extension() != ".h5",
                       "--out: {} does not end in .h5; choose a name that does", out.string());
  require_directory_of(out);
  require_output_file(out, ".h5", inputs);
  if (!system::is_there(out)) return;
  const run::h5::File file = run::h5::File::open(out);
  const auto missing = [&](const std::string& object) { return !file.exists(object); };
  if (std::ranges::any_of(objects, missing)) throw no_output_of(out, command);
}

void require_output_file(const fs::path& out, std::string_view extension,
                         const std::vector<fs::path>& inputs) {
  std::error_code ignored;
  if (!fs::exists(out, ignored)) return;
  const auto is_out = [&](const fs::path& input) { return fs::equivalent(input, out, ignored); };
  const bool is_input = std::any_of(inputs.begin(), inputs.end(), is_out);
  if (fs::is_regular_file(out, ignored) && out.extension() == extension && !is_input) return;
  throw OutputError(fmt::format(
      "{} already exists and is {}; choose another name with --out", out.string(),
      is_input ? std::string("an input of this command")
               : fmt::format("not a regular{}{} file", extension.empty() ? "" : " ", extension)));
}

}  // namespace difftape::app
