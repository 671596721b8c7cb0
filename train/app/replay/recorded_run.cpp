#include "train/app/replay/recorded_run.h"

#include <algorithm>

#include "core/error.h"
#include "train/run/records/spike_records.h"

namespace difftape::app {

namespace fs = std::filesystem;

double RecordedRun::logged(const char* metric, Index step) const {
  const auto row = std::ranges::lower_bound(metrics.step, static_cast<double>(step));
  const auto column = metrics.columns.find(metric);
  if (row == metrics.step.end() || *row != static_cast<double>(step) ||
      column == metrics.columns.end()) {
    throw DataError(fmt::format("{}: has no {} of step {}; need every step of the run",
                                (dir / "metrics.jsonl").string(), metric, step));
  }
  return column->second[static_cast<std::size_t>(row - metrics.step.begin())];
}

RecordedRun open_recorded(const fs::path& dir) {
  RecordedRun run{run::open_run(dir), {}, {}};
  run::require_precision(
      dir, run.env.value(nlohmann::ordered_json::json_pointer("/build/precision"), kRealName),
      "replay");
  run.rule = spike_rule_of(run.config.log);
  run.metrics = run::read_metrics(dir / "metrics.jsonl");
  if (run.metrics.step.empty()) {
    throw DataError(fmt::format("{}: no step is logged yet; nothing can be replayed",
                                (dir / "metrics.jsonl").string()));
  }
  return run;
}

Index worst_spike(const RecordedRun& run) {
  const std::vector<run::SpikeRecord> records = spike_records(run.metrics, run.rule);
  if (records.empty()) {
    throw UsageError(
        fmt::format("{}: has no spike by its rule {}; choose a step with --step, or give the crash "
                    "dump of a divergence in its folder diverged",
                    run.dir.string(), to_string(run.rule.definition)));
  }
  return std::ranges::max_element(records, {}, run::size_of)->step;
}

RestoredState restore_to_step(const RecordedRun& run, Index steps) {
  RestoredState restored{std::make_unique<run::TrainState>(run.config), "the initial weights"};
  for (const auto& [step, file] : run::checkpoints_in(run.dir / "checkpoints")) {
    if (step == 0 || step > steps) continue;
    restored.state->restore(file);
    restored.origin = fs::relative(file, run.dir).string();
    return restored;
  }
  run::restore_start(*restored.state, run.dir);
  return restored;
}

}  // namespace difftape::app
