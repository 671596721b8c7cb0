// Commands about many models: plan their cost, train them, compare them.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "train/app/analyze/plan.h"
#include "train/app/commands.h"
#include "train/run/config/reader.h"
#include "train/run/records/progress.h"
#include "train/study/compare/claims/output.h"
#include "train/study/compare/run_record.h"
#include "train/study/compare/study.h"
#include "train/study/page/report.h"
#include "train/study/sweep/sweep.h"
#include "train/study/sweep/worker.h"
#include "train/system/files.h"

namespace difftape::app {

namespace {

struct PlanArguments {
  std::string config;
  std::vector<std::string> overrides, kinds;
};

void print_plan(const PlanArguments& arguments) {
  const run::Config config = run::load_config(arguments.config, arguments.overrides).config;
  const Plan plan = make_plan(config, arguments.kinds);
  fmt::print("{}\n", to_text(plan_table(plan, config)));
  for (const std::string& line : plan.left_out) fmt::print("{}\n", line);
  fmt::print("* the attention of this configuration. Sequences of {}, batches of {}, {}.\n",
             config.data.seq_len, config.data.batch_size, kRealName);
}

}  // namespace

Command plan_command(Context&) {
  auto a = std::make_shared<PlanArguments>();
  return {
      .name = "plan",
      .help =
          "Cost estimate of each attention kind: parameters by component, FLOPs, memory, KV cache; "
          "trains nothing",
      .options = {config_argument(a->config), set_option(a->overrides),
                  list_option("--kinds", &a->kinds,
                              "Attention kinds to compare, separated by commas (default: all)")},
      .run = [a] { print_plan(*a); }};
}

Command sweep_command(Context& context) {
  struct Arguments {
    std::string sweep, out;
    std::vector<std::string> overrides, arms;
    int jobs = 0;
    bool dry_run = false;
  };
  auto a = std::make_shared<Arguments>();
  return {
      .name = "sweep",
      .help = "Train every run of a sweep, then compare them in a report",
      .options =
          {{.name = "SWEEP", .target = &a->sweep, .help = "Sweep file (YAML)", .required = true},
           set_option(a->overrides),
           {"--out", &a->out, "Directory of the sweep (default: runs/<sweep.name>)"},
           list_option("--arms", &a->arms,
                       "Arms to train now, separated by commas (default: sweep.only, or "
                       "all)"),
           {.name = "--jobs",
            .target = &a->jobs,
            .help = "Runs trained at the same time, each on its own cores (default: measured)",
            .range = std::pair(1, 1024)},
           {"--dry-run", &a->dry_run,
            "Say what would be trained and about how long it takes, and stop"}},
      .run = [a, &context] {
        const study::SweepConfig sweep = study::load_sweep(a->sweep, a->overrides, a->out, a->arms);
        const study::SweepRequest request{context.command_line, &std::cout, STDOUT_FILENO, a->jobs};
        if (a->dry_run) {
          dry_run(sweep, request);
        } else {
          context.exit = run_sweep(sweep, request);
        }
      }};
}

Command worker_command(Context& context) {
  return {.name = "worker",
          .help = "Does a job of a sweep, read from stdin",
          .run = [&context] { context.exit = study::work(std::cin, std::cout); },
          .hidden = true};  // only a sweep writes such jobs
}

namespace {

/// Where the output is no terminal.
constexpr std::size_t kWidth = 100;

struct ReportArguments {
  std::vector<std::string> runs, charts;
  std::string baseline, out = "report.html", svg, verdicts;
};

std::size_t output_width() {
  const run::ConsoleStyle style = run::console_style(STDOUT_FILENO);
  return style.tty ? static_cast<std::size_t>(style.width) : kWidth;
}

void report(const ReportArguments& arguments) {
  require_output_file(arguments.out, ".html");
  if (!arguments.svg.empty()) require_output_file(arguments.svg, ".svg");
  if (!arguments.verdicts.empty())
    require_csv_output(arguments.verdicts, "report", study::kVerdictsHeader);
  const std::vector<std::filesystem::path> dirs(arguments.runs.begin(), arguments.runs.end());
  const study::Collection collection = study::collect_runs(dirs);
  for (const std::string& note : collection.notes) fmt::print(stderr, "difftape: {}\n", note);
  const study::Study study = make_study(collection.runs, arguments.baseline);
  fmt::print("{}", study_text(study, output_width()));
  write_report(study, arguments.out, "difftape", collection.notes, arguments.charts);
  fmt::print("\nreport: {}\n", arguments.out);
  if (!arguments.svg.empty()) {
    write_lr_curve(study, arguments.svg);
    fmt::print("learning-rate curve: {}\n", arguments.svg);
  }
  if (arguments.verdicts.empty()) return;
  system::replace_text(arguments.verdicts, verdicts_csv(evaluate(study)));
  fmt::print("verdicts: {}\n", arguments.verdicts);
}

}  // namespace

Command report_command(Context&) {
  auto a = std::make_shared<ReportArguments>();
  return {
      .name = "report",
      .help = "Compare runs: tables and verdicts here, curves in an HTML page",
      .options =
          {{.name = "RUN_DIR",
            .target = &a->runs,
            .help = "Run directories, or directories that hold them, such as that of a sweep",
            .required = true},
           {"--baseline", &a->baseline,
            "The arm that the others are compared with; default: that of the first run"},
           {.name = "--out", .target = &a->out, .help = "The page to write", .show_default = true},
           list_option("--charts", &a->charts,
                       "Logged quantities to draw, separated by commas, such as optim/lr,"
                       "attn/entropy,attn/entropy/3 (default: a selection)"),
           {"--svg", &a->svg, "Also write the learning-rate curve, as SVG"},
           {"--verdicts", &a->verdicts, "A CSV file to write with the numbers of every claim"}},
      .run = [a] { report(*a); }};
}

}  // namespace difftape::app
