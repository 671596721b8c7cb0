// The command about configurations: what one says, and what it can say.
#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <memory>

#include "train/app/commands.h"
#include "train/run/checkpoint/checkpoint.h"
#include "train/run/config/key_list.h"
#include "train/run/config/reader.h"
#include "train/run/config/writer.h"
#include "train/study/sweep/arm_config.h"
#include "train/system/text_table.h"

namespace difftape::app {

namespace {

struct ShowArguments {
  std::string path, arm;
  std::vector<std::string> overrides;
  bool origin = false, json = false;
};

/// The configuration that a checkpoint holds.
run::Config config_of_checkpoint(const ShowArguments& a) {
  if (a.origin || !a.arm.empty())
    throw UsageError(fmt::format(
        "{}: {} is a checkpoint, which holds the values of one run, not where they came from",
        a.origin ? "--origin" : "--arm", a.path));
  const run::Checkpoint checkpoint(run::find_checkpoint(a.path));
  return run::config_from_yaml(checkpoint.meta().config_yaml, checkpoint.path().string(),
                               a.overrides);
}

/// What eval takes for a checkpoint is one, but for a directory that has a configuration of its
/// own.
bool is_of_checkpoint(const std::filesystem::path& path) {
  std::error_code ignored;
  return run::names_checkpoint(path) && !std::filesystem::exists(path / "config.yaml", ignored);
}

std::string shown(const ShowArguments& a) {
  if (a.origin && a.json)
    throw UsageError("config show: JSON has no comments; leave out --origin or --json");
  const auto text = [&](const run::Config& config) {
    return a.json ? run::to_json(config) : to_yaml(config);
  };
  if (is_of_checkpoint(a.path)) return text(config_of_checkpoint(a));
  const run::ResolvedConfig resolved = study::config_of_arm(a.path, a.overrides, a.arm);
  return a.origin ? to_yaml_with_origins(resolved) : text(resolved.config);
}

Command show_command() {
  auto a = std::make_shared<ShowArguments>();
  return {.name = "show",
          .help = "Print the resolved configuration, or that of a checkpoint, which runs as is",
          .options = {{.name = "CONFIG_OR_CKPT",
                       .target = &a->path,
                       .help = "Configuration file (YAML), run directory or sweep, or a "
                               "checkpoint: what eval takes",
                       .required = true},
                      set_option(a->overrides),
                      arm_option(a->arm),
                      {"--origin", &a->origin, "Say after every value where it came from"},
                      {"--json", &a->json, "Print one JSON object, for scripts"}},
          .run = [a] { fmt::print("{}", shown(*a)); },
          .examples = {"config show my.yaml --origin", "config show sweep.yaml --arm diff_v2",
                       "config show my.yaml --set train.steps=20 --json"}};
}

Command keys_command() {
  struct Arguments {
    std::string prefix;
    bool json = false;
  };
  auto a = std::make_shared<Arguments>();
  return {.name = "keys",
          .help = "List every key: type, default, range, unit, meaning",
          .options = {{"PREFIX", &a->prefix, "Only keys that begin like this, such as optim"},
                      {"--json", &a->json, "Print one JSON array, for scripts"}},
          .run =
              [a] {
                const run::KeyList keys = run::keys_that_begin(a->prefix);
                const std::size_t width =
                    system::terminal_width(STDOUT_FILENO, std::numeric_limits<std::size_t>::max());
                fmt::print("{}", a->json ? run::keys_json(keys) : run::describe_keys(keys, width));
              },
          .examples = {"config keys optim", "config keys --json"}};
}

}  // namespace

Option arm_option(std::string& arm) {
  return {"--arm", &arm, "Of a sweep: an arm, whose first run it is, or the name of a run"};
}

Command config_command(Context&) {
  return {.name = "config",
          .help = "Show and explain configurations",
          .commands = {show_command(),
                       keys_command(),
                       {.name = "schema",
                        .help = "Print the JSON Schema of configuration files",
                        .run = [] { fmt::print("{}", run::config_schema()); },
                        .examples = {"config schema"}}},
          .examples = {"config show my.yaml", "config keys train"}};
}

}  // namespace difftape::app
