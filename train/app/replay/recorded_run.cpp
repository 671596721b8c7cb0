#include "train/app/replay/recorded_run.h"

#include <algorithm>

#include "core/error.h"
#include "train/run/config/writer.h"
#include "train/run/records/run_files.h"
#include "train/run/records/spike_records.h"
#include "train/system/files.h"
#include "train/system/json.h"

namespace difftape::app {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Keys that only one of the two knows are of another version, not of another run.
void require_same_config(const fs::path& dir, const run::Config& config, const Json& env) {
  const Json& recorded = env.at("config");
  for (const auto& [key, value] : flat_config(config)) {
    if (!recorded.contains(key) || recorded.at(key) == value || key == "run.out") continue;
    throw DataError(fmt::format(
        "{}: {} is {}, the run was made with {} (env.json); put its configuration back",
        (dir / "config.yaml").string(), key, value, recorded.at(key).get<std::string>()));
  }
}

void require_same_data(const RecordedRun& run, const Json& env, const run::Dataset& data) {
  const Json recorded = env.value("data", Json::object()), found = data.info();
  for (const auto& [key, value] : found.items()) {
    if (!recorded.contains(key) || recorded.at(key) == value) continue;
    throw DataError(fmt::format(
        "{}: the data changed since this run: {} was {}, it is {}; restore the files",
        run.dir.string(), key, system::json_text(recorded.at(key)), system::json_text(value)));
  }
}

/// The checkpoint with the most steps done that are at most `steps`.
std::optional<fs::path> checkpoint_before(const fs::path& dir, Index steps) {
  std::optional<fs::path> latest;
  Index most = 0;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(dir / "checkpoints", missing)) {
    const Index done = run::step_of_file(entry.path()).value_or(0);
    if (done > steps || done <= most) continue;
    most = done;
    latest = entry.path();
  }
  return latest;
}

}  // namespace

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
  run::require_run_dir(dir);
  const Json env = run::read_env(dir);
  run::require_precision(dir, env.value(Json::json_pointer("/build/precision"), kRealName),
                         "replay");
  const fs::path yaml = dir / "config.yaml";
  RecordedRun run{dir, run::config_from_yaml(system::read_text(yaml), yaml.string()), {}, {}};
  require_same_config(dir, run.config, env);
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
  require_same_data(run, run::read_env(run.dir), *restored.state->data);
  if (const auto checkpoint = checkpoint_before(run.dir, steps)) {
    restored.state->restore(*checkpoint);
    restored.origin = fs::relative(*checkpoint, run.dir).string();
  } else {
    run::restore_initial_weights(*restored.state, run.dir);
  }
  return restored;
}

}  // namespace difftape::app
