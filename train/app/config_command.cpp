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

void add_show(CLI::App& config) {
  CLI::App* show =
      config.add_subcommand("show", "Print the resolved configuration, which runs as is");
  auto arguments = std::make_shared<ShowArguments>();
  show->add_option("CONFIG", arguments->path, "Configuration file (YAML)")->required();
  add_set_option(*show, arguments->overrides);
  show->add_flag("--origin", arguments->origin, "Say after every value where it came from");
  show->callback([arguments] {
    const run::ResolvedConfig resolved = run::load_config(arguments->path, arguments->overrides);
    fmt::print("{}", arguments->origin ? to_yaml_with_origins(resolved) : to_yaml(resolved.config));
  });
}

/// A subcommand without arguments that prints one text.
void add_print(CLI::App& config, const char* name, const char* help, std::string (*text)()) {
  config.add_subcommand(name, help)->callback([text] { fmt::print("{}", text()); });
}

}  // namespace

void add_config(CLI::App& app, Context&) {
  CLI::App* config = app.add_subcommand("config", "Show and explain configurations");
  config->require_subcommand(1);
  add_show(*config);
  add_print(*config, "keys", "List every key: type, default, range, unit, meaning",
            run::describe_keys);
  add_print(*config, "schema", "Print the JSON Schema of configuration files", run::config_schema);
}

void add_set_option(CLI::App& command, std::vector<std::string>& overrides) {
  command
      .add_option("--set", overrides,
                  "Override one key of 'config keys' with a YAML value; repeat for more")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)  // what follows the value may be CONFIG
      ->take_all();
}

}  // namespace difftape::app
