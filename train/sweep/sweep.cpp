#include "train/sweep/sweep.h"

#include <filesystem>
#include <new>
#include <ostream>

#include "core/error.h"
#include "layers/cost.h"
#include "train/config/writer.h"
#include "train/log/files.h"
#include "train/log/run_files.h"
#include "train/loop/run_writer.h"
#include "train/loop/stop.h"
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
  std::error_code ignored;  // what is wrong with the place is said when the run is created
  if (!fs::exists(dir, ignored) || fs::is_empty(dir, ignored)) return Found::nothing;
  if (!same_run(dir, config)) {
    throw OutputError(fmt::format(
        "{} exists and holds something else than this arm; nothing is overwritten: remove it, or "
        "choose another directory with --out",
        dir.string()));
  }
  const bool has_status = fs::exists(dir / "status.json", ignored);
  const RunState state = has_status ? read_status(dir).state : RunState::running;
  const bool complete = state == RunState::finished || state == RunState::diverged;
  if (!complete) static_cast<void>(DirectoryLock(dir));  // an error if it is being trained now
  return complete ? Found::complete : Found::interrupted;
}

void create_sweep_dir(const fs::path& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error) {
    throw OutputError(
        fmt::format("cannot create sweep directory {}: {}", dir.string(), error.message()));
  }
}

/// Trains one arm unless it is complete.
void run_arm(const SweepArm& arm, Found found, const SweepRequest& request) {
  const Config& config = arm.resolved.config;
  *request.console << fmt::format("== {}: {}\n", config.run.name, config.run.out);
  if (found == Found::complete) {
    *request.console << "already trained\n";
    return;
  }
  TrainRequest train_request{config.run.out, found == Found::interrupted, request.command,
                             request.console, request.console_descriptor};
  train(config, train_request);
}

void compare_arms(const SweepConfig& sweep, const std::vector<fs::path>& dirs,
                  std::ostream& console) {
  if (dirs.empty()) return;
  std::vector<RunSummary> summaries;
  for (const RunRecord& run : load_runs(dirs)) summaries.push_back(run.summary);
  console << "\n" << comparison_table(summaries);
  const fs::path report = fs::path(sweep.out) / "report.html";
  write_report(dirs, report, sweep.name);
  console << "\nreport: " << report.string() << "\n";
}

}  // namespace

Exit run_sweep(const SweepConfig& sweep, const SweepRequest& request) {
  std::vector<Found> found;
  for (const SweepArm& arm : sweep.arms) found.push_back(look(arm.resolved.config));
  create_sweep_dir(sweep.out);
  const StopRequest stop;
  std::vector<fs::path> baseline, others;
  Exit result = Exit::ok;
  for (size_t i = 0; i < sweep.arms.size(); ++i) {
    const SweepArm& arm = sweep.arms[i];
    const auto failed = [&](Exit exit, std::string_view reason) {
      *request.console << fmt::format("{}: failed: {}\n", arm.resolved.config.run.name, reason);
      if (result == Exit::ok) result = exit;
    };
    try {
      run_arm(arm, found[i], request);
      (arm.name == sweep.baseline ? baseline : others).push_back(arm.resolved.config.run.out);
    } catch (const Error& error) {
      failed(error.exit(), error.what());
    } catch (const std::bad_alloc&) {
      failed(Exit::bad_data, "out of memory");
    }
    if (stop.received() != Exit::ok) {
      *request.console << "sweep stopped; the same command continues it\n" << std::flush;
      return stop.received();
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
    const double tokens =
        static_cast<double>(tokens_per_step(config)) * static_cast<double>(config.train.steps);
    const double petaflop = cost.train_flops_per_token * tokens / 1e15;
    total += petaflop;
    text +=
        fmt::format("{:<24}{:>14}{:>14.0f}{:>10}{:>12.4f}  {}\n", config.run.name,
                    cost.total_parameters, tokens, config.train.steps, petaflop, config.run.out);
  }
  return text + fmt::format("{} arms, {:.4f} PFLOP in all\n", sweep.arms.size(), total);
}

}  // namespace difftape
