#include <fmt/core.h>

#include <memory>

#include "train/app/analyze/plan.h"
#include "train/app/commands.h"
#include "train/run/config/reader.h"

namespace difftape::app {

void add_plan(CLI::App& app, Context&) {
  struct Arguments {
    std::string config;
    std::vector<std::string> overrides, kinds;
  };
  CLI::App* command = app.add_subcommand(
      "plan",
      "Parameters by component, FLOPs, memory and KV cache of each attention kind; trains nothing");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("CONFIG", arguments->config, "Configuration file (YAML)")->required();
  add_set_option(*command, arguments->overrides);
  add_list_option(*command, "--kinds", arguments->kinds,
                  "Attention kinds to compare, separated by commas (default: all)");
  command->callback([arguments] {
    const run::Config config = run::load_config(arguments->config, arguments->overrides).config;
    const Plan plan = make_plan(config, arguments->kinds);
    fmt::print("{}\n", to_text(plan_table(plan, config)));
    for (const std::string& line : plan.left_out) fmt::print("{}\n", line);
    fmt::print("* the attention of this configuration. Sequences of {}, batches of {}, {}.\n",
               config.data.seq_len, config.data.batch_size, kRealName);
  });
}

}  // namespace difftape::app
