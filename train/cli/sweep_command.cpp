#include <fmt/core.h>
#include <unistd.h>

#include <iostream>
#include <memory>

#include "train/cli/commands.h"
#include "train/sweep/sweep.h"

namespace difftape::cli {

void add_sweep(CLI::App& app, Context& context) {
  struct Arguments {
    std::string sweep, out;
    std::vector<std::string> overrides;
    bool dry_run = false;
  };
  CLI::App* command =
      app.add_subcommand("sweep", "Train every arm of a sweep, then compare them in a report");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("SWEEP", arguments->sweep, "Sweep file (YAML)")->required();
  add_set_option(*command, arguments->overrides);
  command->add_option("--out", arguments->out,
                      "Directory of the sweep (default: runs/<sweep.name>)");
  command->add_flag("--dry-run", arguments->dry_run, "Say what would be trained, and stop");
  command->callback([arguments, &context] {
    const SweepConfig sweep = load_sweep(arguments->sweep, arguments->overrides, arguments->out);
    if (arguments->dry_run) {
      fmt::print("{}", describe_sweep(sweep));
      return;
    }
    context.exit = run_sweep(sweep, {context.command_line, &std::cout, STDOUT_FILENO});
  });
}

}  // namespace difftape::cli
