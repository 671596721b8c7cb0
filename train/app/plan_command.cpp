#include <fmt/core.h>

#include <memory>

#include "train/app/analyze/plan.h"
#include "train/app/commands.h"
#include "train/run/config/reader.h"

namespace difftape::app {

namespace {

struct Arguments {
  std::string config;
  std::vector<std::string> overrides, kinds;
};

void print_plan(const Arguments& arguments) {
  const run::Config config = run::load_config(arguments.config, arguments.overrides).config;
  const Plan plan = make_plan(config, arguments.kinds);
  fmt::print("{}\n", to_text(plan_table(plan, config)));
  for (const std::string& line : plan.left_out) fmt::print("{}\n", line);
  fmt::print("* the attention of this configuration. Sequences of {}, batches of {}, {}.\n",
             config.data.seq_len, config.data.batch_size, kRealName);
}

}  // namespace

Command plan_command(Context&) {
  auto a = std::make_shared<Arguments>();
  return {
      .name = "plan",
      .help =
          "Parameters by component, FLOPs, memory and KV cache of each attention kind; "
          "trains nothing",
      .options = {config_argument(a->config), set_option(a->overrides),
                  list_option("--kinds", &a->kinds,
                              "Attention kinds to compare, separated by commas (default: all)")},
      .run = [a] { print_plan(*a); }};
}

}  // namespace difftape::app
