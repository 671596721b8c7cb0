#pragma once
// A run directory as the starting point of a replay. Nothing in it is written.

#include <filesystem>

#include "train/run/loop/train_state.h"
#include "train/run/records/metrics.h"
#include "train/run/records/run_files.h"

namespace difftape::app {

struct RecordedRun : run::RunDir {
  stats::SpikeRule rule;
  run::MetricsTable metrics;

  Index last_step() const { return static_cast<Index>(metrics.step.back()); }
  /// A metric of a step. Throws DataError if the step did not log it.
  double logged(const char* metric, Index step) const;
};

/// Throws what run::open_run and read_metrics throw, and DataError if no step is logged or the run
/// computed in the other precision.
RecordedRun open_recorded(const std::filesystem::path& dir);

/// The first step of the largest spike event; a value that is not finite is the largest.
/// Throws UsageError if the run has none.
Index worst_spike(const RecordedRun& run);

/// The state of the run after at most `steps` steps: from its latest checkpoint that is not
/// later, or from the start. `origin` says which. Throws what TrainState and its restore throw, and
/// DataError if the data is not that of the run.
struct RestoredState {
  std::unique_ptr<run::TrainState> state;
  std::string origin;  ///< "checkpoints/step-00000100.h5" or "the initial weights"
};
RestoredState restore_to_step(const RecordedRun& run, Index steps);

}  // namespace difftape::app
