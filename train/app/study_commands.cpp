// Commands of many models: `difftape plan` and `difftape sweep`.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <set>

#include "core/distributed.h"
#include "train/app/commands.h"
#include "train/app/plan.h"
#include "train/run/checkpoint/initial_settings.h"
#include "train/run/records/run_files.h"
#include "train/study/compare/claims/verdicts.h"
#include "train/study/sweep/sweep.h"
#include "train/study/sweep/sweep_config.h"
#include "train/study/sweep/worker.h"
#include "train/system/text_table.h"

namespace difftape::app {

namespace {

struct PlanArguments {
  std::string config, arm;
  std::vector<std::string> overrides, kinds;
};

void print_plan(const PlanArguments& arguments) {
  const run::Config config =
      study::config_of_arm(arguments.config, arguments.overrides, arguments.arm).config;
  fmt::print("Sequences of {}, batches of {}, {}.\n\n", config.data.seq_len, config.data.batch_size,
             kRealName);
  std::fflush(stdout);
  for (const std::string& warning : run::warnings_of(config)) say("warning: " + warning);
  const Plan plan = make_plan(config, arguments.kinds);
  fmt::print("{}\n", to_text(plan_table(plan, config)));
  for (const std::string& line : plan.left_out) fmt::print("{}\n", line);
  fmt::print("* the attention of this configuration\n");
}

}  // namespace

void plan_command(CLI::App& program, Context&) {
  auto a = std::make_shared<PlanArguments>();
  CLI::App& command =
      add_command(program, "plan", "Estimate parameters, FLOPs, memory and KV cache per kind",
                  {"plan my.yaml", "plan sweep.yaml --arm diff_v2 --kinds softmax,diff_v2"});
  add_config(command, a->config);
  add_set(command, a->overrides);
  add_arm(command, a->arm);
  add_list(command, "--kinds", a->kinds,
           "Attention kinds to compare, separated by commas (default: all)");
  command.callback([a] { print_plan(*a); });
}

namespace {

void print_power(const study::SweepConfig& sweep) {
  if (!sweep.claims) {
    throw UsageError("sweep --power: the sweep has no claims; name their file in sweep.claims");
  }
  const Index count = study::seeds_that_count(*sweep.claims, sweep.runs);
  const auto plans_none = [](const study::Claim& claim) {
    return claim.planned_pairs() == std::vector<Index>{0};
  };
  if (count < study::kSeedsForVerdict && std::ranges::any_of(sweep.claims->claims, plans_none)) {
    throw UsageError(fmt::format(
        "sweep --power: the number of seeds is {}, but a verdict needs {}; add some to sweep.seeds",
        count, study::kSeedsForVerdict));
  }
  const bool of_text = std::ranges::all_of(
      sweep.runs, [](auto& each) { return each.config().data.type == run::DataKind::text; });
  fmt::print("{}", power_text(*sweep.claims, count, system::kTextWidth,
                              claims_elsewhere(*sweep.claims, sweep.runs),
                              of_text ? run::DataKind::text : run::DataKind::tokens));
}

struct SweepArguments {
  std::string sweep, out, submit, run;
  std::vector<std::string> overrides, arms, sbatch;
  int jobs = 0;
  bool dry_run = false, power = false, compare = false;
};

/// Throws UsageError for several processes of mpirun, since all would train the same runs.
void require_one_process() {
  if (distributed::count() == 1) return;
  throw UsageError(fmt::format(
      "sweep: {} processes of mpirun would all train the same runs; start one process, with --jobs "
      "workers",
      distributed::count()));
}

/// Returns the command line of this sweep for jobs that start in the directory of this process.
study::SlurmRequest slurm_request(const SweepArguments& a, const study::SweepConfig& sweep) {
  if (a.submit != "slurm")
    throw UsageError(
        fmt::format("--submit {}: must be slurm, the only supported cluster", a.submit));
  std::vector<std::string> words{std::filesystem::read_symlink("/proc/self/exe").string(), "sweep",
                                 a.sweep, "--out", sweep.out};
  for (const std::string& text : a.overrides) words.insert(words.end(), {"--set", text});
  return {words, a.sbatch, &std::cout};
}

/// Prints the warnings of the sweep. Then prints each warning of the runs to be trained once, with
/// the arm of the first such run.
void say_warnings(const study::SweepConfig& sweep) {
  for (const std::string& warning : study::warnings_of(sweep)) say("warning: " + warning);
  std::set<std::string> known;
  for (const study::SweepRun& each : sweep.runs) {
    if (!each.selected) continue;
    for (const std::string& other : run::other_initial_settings(each.resolved))
      if (known.insert(other).second) say(fmt::format("arm {}: {}", each.base_arm, other));
    for (const std::string& warning : run::warnings_of(each.config()))
      if (known.insert(warning).second)
        say(fmt::format("warning: arm {}: {}", each.base_arm, warning));
  }
}

system::Exit sweep_as_told(const SweepArguments& a, const Context& context) {
  require_one_process();
  const bool is_auto = a.out == kOutAuto;
  if (is_auto && (a.compare || !a.run.empty()))
    throw UsageError(
        "--out auto names a new directory, but --run and --compare need the directory of the "
        "sweep; name it with --out");
  study::SweepConfig sweep = study::load_sweep(a.sweep, a.overrides, is_auto ? "" : a.out, a.arms);
  if (is_auto)
    sweep = study::load_sweep(a.sweep, a.overrides, run::free_run_dir(sweep.out), a.arms);
  const study::SweepRequest request{context.command_line, &std::cout, STDOUT_FILENO, a.jobs};
  if (int{a.power} + int{a.dry_run} + int{a.compare} + int{!a.submit.empty()} +
          int{!a.run.empty()} >
      1)
    throw UsageError(
        "--power, --dry-run, --submit, --run and --compare exclude each other; give one of them");
  if (a.run.empty()) say_warnings(sweep);  // a job array of runs has warned when it was submitted
  if (a.power) {
    print_power(sweep);
  } else if (a.dry_run) {
    dry_run(sweep, request);
  } else if (!a.submit.empty()) {
    submit_to_slurm(sweep, slurm_request(a, sweep));
  } else {
    warn_if_slower();
    outlive_reader();
    return a.compare        ? compare_sweep(sweep, request)
           : !a.run.empty() ? train_one(sweep, a.run, request)
                            : run_sweep(sweep, request);
  }
  return system::Exit::ok;
}

}  // namespace

void sweep_command(CLI::App& program, Context& context) {
  auto a = std::make_shared<SweepArguments>();
  CLI::App& command =
      add_command(program, "sweep", "Train every run of a sweep, then compare them in a report",
                  {"sweep sweep.yaml --dry-run", "sweep sweep.yaml",
                   "sweep sweep.yaml --arms softmax --set train.steps=20 --out auto"});
  command.preparse_callback([](std::size_t) { distributed::join(); });
  add_option(command, "SWEEP", a->sweep, "Sweep file (YAML)")->required();
  add_set(command, a->overrides);
  add_option(command, "--out", a->out,
             "Sweep directory (default: runs/<sweep.name>); auto picks the first unused of DIR, "
             "DIR-2, DIR-3, ...");
  add_list(command, "--arms", a->arms,
           "Arms to train, separated by commas (default: sweep.only, or all)");
  add_option(command, "--jobs", a->jobs,
             "Number of runs to train at the same time (default: one per core)")
      ->check(CLI::Range(1, 1024));
  command.add_flag("--dry-run", a->dry_run,
                   "List the runs and, once some are finished, estimate the time; train nothing");
  command.add_flag("--power", a->power,
                   "Print the effects that the claims can detect with these seeds; train nothing");
  CLI::Option* submit =
      add_option(command, "--submit", a->submit,
                 "slurm: submit the runs as a job array, and a job that compares them");
  add_option(command, "--sbatch", a->sbatch,
             "Option of sbatch, such as --sbatch=--time=60; may be repeated")
      ->needs(submit);
  add_option(command, "--run", a->run,
             "Train only the run with this name, as a task of a job array does");
  command.add_flag("--compare", a->compare,
                   "Train nothing; update runs.csv, comparison and report");
  command.callback([a, &context] { context.exit = sweep_as_told(*a, context); });
}

void worker_command(CLI::App& program, Context& context) {
  program.add_subcommand("worker", "Train a run of a sweep, read from standard input")
      ->group("")  // only a sweep writes such jobs
      ->callback([&context] { context.exit = study::work(std::cin); });
}

}  // namespace difftape::app
