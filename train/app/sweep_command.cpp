#include <unistd.h>

#include <iostream>
#include <memory>

#include "train/app/commands.h"
#include "train/study/sweep/dry_run.h"
#include "train/study/sweep/sweep.h"
#include "train/study/sweep/worker.h"

namespace difftape::app {

void add_sweep(CLI::App& app, Context& context) {
  struct Arguments {
    std::string sweep, out;
    std::vector<std::string> overrides, arms;
    int jobs = 0;
    bool dry_run = false;
  };
  CLI::App* command =
      app.add_subcommand("sweep", "Train every run of a sweep, then compare them in a report");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("SWEEP", arguments->sweep, "Sweep file (YAML)")->required();
  add_set_option(*command, arguments->overrides);
  command->add_option("--out", arguments->out,
                      "Directory of the sweep (default: runs/<sweep.name>)");
  add_list_option(*command, "--arms", arguments->arms,
                  "Arms to train now, separated by commas (default: sweep.only, or all)");
  command
      ->add_option("--jobs", arguments->jobs,
                   "Runs trained at the same time, each on its own cores (default: measured)")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--dry-run", arguments->dry_run,
                    "Say what would be trained and about how long it takes, and stop");
  command->callback([arguments, &context] {
    const study::SweepConfig sweep =
        study::load_sweep(arguments->sweep, arguments->overrides, arguments->out, arguments->arms);
    const study::SweepRequest request{context.command_line, &std::cout, STDOUT_FILENO,
                                      arguments->jobs};
    if (arguments->dry_run) {
      dry_run(sweep, request);
    } else {
      context.exit = run_sweep(sweep, request);
    }
  });
}

void add_worker(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("worker", "Does a job of a sweep, read from stdin");
  command->group("");  // not listed: only a sweep writes such jobs
  command->callback([&context] { context.exit = study::work(std::cin, std::cout); });
}

}  // namespace difftape::app
