#pragma once
// Reads a run directory that is to be continued.

#include <filesystem>
#include <optional>

#include "train/run/loop/train_state.h"
#include "train/run/records/metrics.h"

namespace difftape::run {

/// Whether `dir` holds a run that can be continued with this configuration.
bool same_run(const std::filesystem::path& dir, const Config& config);

/// The step of the checkpoint that a resume restores, by its name; 0 if there is none yet. Throws
/// MissingInput if `latest` names a file that is not there, DataError if its name has no step.
Index resume_step(const std::filesystem::path& dir);

/// Restores the state of a run: its latest checkpoint, or, before the first one, nothing but
/// the configuration, from which the same steps follow again. Drops the metrics after it. Throws
/// what reading them throws, and ConfigError if there is no checkpoint and the configuration is
/// another.
void restore(TrainState& state, const std::filesystem::path& dir);

/// The last attention maps up to `step` of an interrupted run, if it has any. They are a copy like
/// all of metrics.h5: one that cannot be read is replaced at the next checkpoint.
std::optional<AttentionMaps> maps_before(const std::filesystem::path& dir, Index step);

}  // namespace difftape::run
