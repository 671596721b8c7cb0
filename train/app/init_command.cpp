// The command that writes a first configuration.
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "train/app/commands.h"
#include "train/run/config/starter.h"
#include "train/system/files.h"
#include "train/system/suggest.h"

namespace difftape::app {

namespace {

struct InitArguments {
  std::string kind = "diff_v2", out;
};

void write_starter(const InitArguments& a) {
  const std::vector<std::string> kinds = attention_kinds();
  if (std::ranges::find(kinds, a.kind) == kinds.end()) {
    throw UsageError(fmt::format("KIND: '{}' is not one of {}{}", a.kind, fmt::join(kinds, ", "),
                                 system::did_you_mean(a.kind, kinds)));
  }
  const std::string out = a.out.empty() ? a.kind + ".yaml" : a.out;
  system::require_absent(out);
  system::replace_text(out, run::starter_config(a.kind, out));
  fmt::print("{}: change what you like, then: difftape train {}\n", out, out);
}

}  // namespace

Command init_command(Context&) {
  auto a = std::make_shared<InitArguments>();
  return {
      .name = "init",
      .help = "Write a configuration with comments to begin with, which trains as it is",
      .options = {{.name = "KIND",
                   .target = &a->kind,
                   .help = fmt::format("Attention kind: {}", fmt::join(attention_kinds(), ", ")),
                   .show_default = true,
                   .choices = attention_kinds},
                  {"--out", &a->out, "File to write (default: KIND.yaml)"}},
      .run = [a] { write_starter(*a); },
      .examples = {"init", "init diff_v1 --out v1.yaml"}};
}

}  // namespace difftape::app
