#pragma once
// Finds whether a spike was caused by the batch, the state, or both. Retrains a run up to a step,
// bit for bit, and evaluates the step's batch on other states, and other batches on its state.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/run/loop/crash_dump.h"
#include "train/run/loop/train_state.h"
#include "train/run/records/metrics.h"
#include "train/run/records/metrics_difference.h"
#include "train/run/records/run_files.h"
#include "train/stats/spikes.h"

namespace difftape::app {

struct RecordedRun : run::RunDir {
  stats::SpikeRule rule;
  run::MetricsTable metrics;

  Index last_step() const { return static_cast<Index>(metrics.step.back()); }
  /// Returns a metric of a step. Throws DataError if the step did not log it.
  double logged(const char* metric, Index step) const;
};

/// Opens a run. Throws what run::open_run and read_metrics throw, and DataError if no step is
/// logged or the run has the other precision.
RecordedRun open_recorded(const std::filesystem::path& dir);

/// Returns the loss or gradient norm of a step if its logged bits differ from the given ones.
std::optional<run::DifferentMetric> mismatch(const RecordedRun& run, Index step, double loss,
                                             double grad_norm);

/// Returns the first step of the largest spike event; a non-finite value counts as the largest.
/// Throws UsageError if the run has no spike.
Index worst_spike(const RecordedRun& run);

/// State of a run after at most `steps` steps, from its latest checkpoint up to there or from the
/// initial weights. restore_to_step throws what TrainState and its restore throw, and DataError if
/// the data differs from the data of the run.
struct RestoredState {
  std::unique_ptr<run::TrainState> state;
  std::string origin;  ///< "checkpoints/step-00000100.h5" or "the initial weights"
};
RestoredState restore_to_step(const RecordedRun& run, Index steps);

struct SpikeReplayRequest {
  std::optional<Index> step = {};  ///< nothing: worst_spike
  /// Offsets from the step: of batches to evaluate with its state, and of states to evaluate with
  /// its batch. Steps before 1 and states after the last logged step are skipped.
  std::vector<Index> batches = {-3, -2, -1, 0, 1, 2, 3};
  std::vector<Index> states = {-3, -2, -1};
  std::function<void(const std::string&)> say = [](const std::string&) {};  ///< progress lines
};

/// Loss and gradient norm of one state on one batch, judged as if the step had logged them.
struct ReplayTrial {
  Index state = 0;  ///< the weights before this step
  Index batch = 0;  ///< the batch of this step
  double loss = 0, grad_norm = 0;
  stats::SpikeVerdict loss_verdict, grad_verdict;  ///< by the window before the replayed step
};

enum class Cause { batch, state, both, inconclusive };

constexpr auto names_of(Cause) {
  using enum Cause;
  return std::to_array<Named<Cause>>({{"the batch", batch},
                                      {"the state", state},
                                      {"both: only this batch on this state spikes", both},
                                      {"inconclusive", inconclusive}});
}

struct SpikeReplay {
  std::filesystem::path dir;
  std::string rule;  ///< name of the spike rule
  Index step = 0;
  std::string origin;   ///< where retraining started
  Index retrained = 0;  ///< steps retrained with the logged loss and gradient norm
  std::optional<run::DifferentMetric> mismatch;  ///< if set, the replay stopped there
  std::vector<ReplayTrial> trials;               ///< the step itself first, then by state and batch
  /// Number of trials, and of trials that spike in a quantity that also spikes at the step: other
  /// batches on its state, and its batch on earlier states. Later states have seen the batch.
  Index other_batches = 0, other_batches_spike = 0;
  Index earlier_states = 0, earlier_states_spike = 0;
  Cause cause = Cause::inconclusive;
};

/// Returns the cause, from the fractions of trials that spike. "Most" is at least two thirds, "few"
/// at most one third:
///   batch          few other batches spike; the batch spikes on most earlier states
///   state          most other batches spike; the batch spikes on few earlier states
///   both           few spike either way
///   inconclusive   anything else, no trials, or the step is not a spike
Cause cause_of(Index other_batches, Index other_batches_spike, Index earlier_states,
               Index earlier_states_spike);

/// Replays a step. Writes nothing into the run. Throws what open_recorded, worst_spike and
/// restore_to_step throw, and UsageError for a step that the run did not log.
SpikeReplay replay_spike(const std::filesystem::path& run, const SpikeReplayRequest& request = {});

/// Returns the output of `difftape replay`.
std::string to_text(const SpikeReplay& replay);

/// A number as recorded and as computed now.
struct Repeated {
  std::string name;  ///< "loss", "grad_norm", or "grad_norm/<parameter>"
  double recorded = 0, now = 0;
};

struct CrashReplay {
  std::filesystem::path path;
  std::string run;           ///< run.name
  run::Divergence recorded;  ///< as in the crash dump
  run::Divergence now;       ///< its step and quantity; parameter and op as found again
  std::vector<Repeated> numbers;

  /// Returns whether all numbers are bitwise equal and op and parameter are the same.
  bool identical() const;
};

/// Replays a crash dump. Throws MissingInput; DataError if the file is damaged, not a crash dump,
/// or of the other precision; ConfigError if this machine does not support train.precision.
CrashReplay replay_crash(const std::filesystem::path& path);

/// Returns the output of `difftape replay`.
std::string to_text(const CrashReplay& replay);

}  // namespace difftape::app
