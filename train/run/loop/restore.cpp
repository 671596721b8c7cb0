#include "train/run/loop/restore.h"

#include "core/error.h"
#include "train/run/checkpoint/checkpoint.h"
#include "train/run/config/reader.h"
#include "train/run/records/metric_registry.h"
#include "train/run/records/metrics.h"
#include "train/system/files.h"

namespace difftape::run {

namespace {

namespace fs = std::filesystem;

/// Every step logs its norm, so a checkpoint need not hold them.
void restore_grad_norms(TrainState& state, const MetricsTable& metrics) {
  const auto column = metrics.columns.find(metric("optim/grad_norm"));
  if (column == metrics.columns.end()) return;
  for (size_t i = 0; i < metrics.step.size(); ++i) {
    const auto step = static_cast<Index>(metrics.step[i]);
    if (step >= 1 && step <= state.step) {
      state.grad_norms[static_cast<size_t>(step - 1)] = column->second[i];
    }
  }
}

}  // namespace

bool same_run(const fs::path& dir, const Config& config) {
  try {
    const fs::path yaml = dir / "config.yaml";
    return same_run(config_from_yaml(system::read_text(yaml), yaml.string()), config);
  } catch (const Error&) {
    return false;  // no configuration, or one that cannot be read
  }
}

Index resume_step(const fs::path& dir) {
  std::error_code ignored;
  if (!fs::exists(dir / "checkpoints" / "latest", ignored)) return 0;
  const fs::path path = find_checkpoint(dir);
  if (const std::optional<Index> step = step_of_file(path)) return *step;
  throw DataError(
      fmt::format("{}: a checkpoint of a run is named step-<number>.h5; let {} name one of these",
                  path.string(), (dir / "checkpoints" / "latest").string()));
}

void restore(TrainState& state, const fs::path& dir) {
  if (fs::exists(dir / "checkpoints" / "latest")) {
    state.restore(find_checkpoint(dir));
  } else if (!same_run(dir, state.config)) {
    throw ConfigError(fmt::format(
        "{}: has no checkpoint and was made with another configuration; resume with its own "
        "config.yaml, or start a new run with another --out",
        dir.string()));
  }
  if (!fs::exists(dir / "metrics.jsonl")) return;
  truncate_metrics(dir / "metrics.jsonl", state.step);
  restore_grad_norms(state, read_metrics(dir / "metrics.jsonl"));
}

std::optional<AttentionMaps> maps_before(const fs::path& dir, Index step) {
  try {
    std::optional<AttentionMaps> maps = read_attention_maps(dir / "metrics.h5");
    return maps && maps->step <= step ? maps : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace difftape::run
