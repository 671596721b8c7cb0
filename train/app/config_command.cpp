#include <fmt/core.h>

#include <memory>

#include "train/app/commands.h"
#include "train/run/config/reader.h"
#include "train/run/config/writer.h"

namespace difftape::app {

namespace {

struct ShowArguments {
  std::string path;
  std::vector<std::string> overrides;
  bool origin = false;
};

Command show_command() {
  auto a = std::make_shared<ShowArguments>();
  return {.name = "show",
          .help = "Print the resolved configuration, which runs as is",
          .options = {config_argument(a->path),
                      set_option(a->overrides),
                      {"--origin", &a->origin, "Say after every value where it came from"}},
          .run = [a] {
            const run::ResolvedConfig resolved = run::load_config(a->path, a->overrides);
            fmt::print("{}", a->origin ? to_yaml_with_origins(resolved) : to_yaml(resolved.config));
          }};
}

/// A command without arguments that prints one text.
Command print_command(const char* name, const char* help, std::string (*text)()) {
  return {.name = name, .help = help, .run = [text] { fmt::print("{}", text()); }};
}

}  // namespace

Command config_command(Context&) {
  return {.name = "config",
          .help = "Show and explain configurations",
          .commands = {show_command(),
                       print_command("keys", "List every key: type, default, range, unit, meaning",
                                     run::describe_keys),
                       print_command("schema", "Print the JSON Schema of configuration files",
                                     run::config_schema)}};
}

}  // namespace difftape::app
