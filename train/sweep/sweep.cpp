#include "train/sweep/sweep.h"

#include <filesystem>
#include <ostream>

#include "core/error.h"
#include "layers/cost.h"
#include "train/config/writer.h"
#include "train/log/files.h"
#include "train/log/run_files.h"
#include "train/loop/step.h"
#include "train/loop/trainer.h"
#include "train/report/report.h"
#include "train/report/table.h"

namespace difftape {

namespace {

namespace fs = std::filesystem;

/// What is in an arm's directory already.
enum class Found { nothing, complete, interrupted };

Found look(const Config& config) {
  const fs::path dir = config.run.out;
  if (!fs::exists(dir) || fs::is_empty(dir)) return Found::nothing;
  if (!fs::exists(dir / "config.yaml") || read_text(dir / "config.yaml") != to_yaml(config)) {
    throw OutputError(fmt::format(
        "{}: holds something else than this arm; remove it or choose another --out", dir.string()));
  }
  const RunState state = read_status(dir).state;
  if (state == RunState::finished || state == RunState::diverged) return Found::complete;
  if (fs::exists(dir / "checkpoints" / "latest")) return Found::interrupted;
  throw OutputError(fmt::format(
      "{}: was interrupted before its first checkpoint; remove it or choose another --out",
      dir.string()));
}

bool is_signal(Exit exit) { return exit == Exit::sigint || exit == Exit::sigterm; }

/// Trains one arm unless it is complete.
Exit run_arm(const SweepArm& arm, Found found, const SweepRequest& request) {
  const Config& config = arm.resolved.config;
  *request.console << fmt::format("== {}: {}\n", config.run.name, config.run.out);
  if (found == Found::complete) {
    *request.console << "already trained\n";
    return Exit::ok;
  }
  TrainRequest train_request{config.run.out, found == Found::interrupted, request.command,
                             request.console, request.console_descriptor};
  return train(config, train_request);
}

void compare_arms(const SweepConfig& sweep, const std::vector<fs::path>& dirs,
                  std::ostream& console) {
  if (dirs.empty()) return;
  std::vector<RunSummary> summaries;
  for (const fs::path& dir : dirs) summaries.push_back(summarize(dir));
  console << "\n" << comparison_table(summaries);
  const fs::path report = fs::path(sweep.out) / "report.html";
  write_report(dirs, report, sweep.name);
  console << "\nreport: " << report.string() << "\n";
}

}  // namespace

Exit run_sweep(const SweepConfig& sweep, const SweepRequest& request) {
  std::vector<Found> found;
  for (const SweepArm& arm : sweep.arms) found.push_back(look(arm.resolved.config));
  std::vector<fs::path> baseline, others;
  Exit result = Exit::ok;
  for (size_t i = 0; i < sweep.arms.size(); ++i) {
    const SweepArm& arm = sweep.arms[i];
    try {
      const Exit exit = run_arm(arm, found[i], request);
      (arm.name == sweep.baseline ? baseline : others).push_back(arm.resolved.config.run.out);
      if (is_signal(exit)) return exit;
    } catch (const Error& error) {
      *request.console << fmt::format("{}: failed: {}\n", arm.resolved.config.run.name,
                                      error.what());
      if (result == Exit::ok) result = error.exit();
    }
  }
  baseline.insert(baseline.end(), others.begin(), others.end());
  compare_arms(sweep, baseline, *request.console);
  return result;
}

std::string describe_sweep(const SweepConfig& sweep) {
  std::string text = fmt::format("{:<24}{:>14}{:>14}{:>10}{:>12}  {}\n", "arm", "parameters",
                                 "tokens", "steps", "PFLOP", "out");
  double total = 0;
  for (const SweepArm& arm : sweep.arms) {
    const Config& config = arm.resolved.config;
    const ModelCost cost = model_cost(config.model, config.data.seq_len);
    const Index tokens = tokens_per_step(config) * config.train.steps;
    const double petaflop = cost.train_flops_per_token * static_cast<double>(tokens) / 1e15;
    total += petaflop;
    text += fmt::format("{:<24}{:>14}{:>14}{:>10}{:>12.4f}  {}\n", config.run.name,
                        cost.total_parameters, tokens, config.train.steps, petaflop,
                        config.run.out);
  }
  return text + fmt::format("{} arms, {:.4f} PFLOP in all\n", sweep.arms.size(), total);
}

}  // namespace difftape
