#pragma once
// Was a spike caused by the data, the state, or both? Trains a run again up to a step, bit for bit,
// and evaluates the batch of that step on other states, and other batches on its state.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/run/loop/crash_dump.h"
#include "train/run/loop/train_state.h"
#include "train/run/records/metrics.h"
#include "train/run/records/run_files.h"
#include "train/stats/spikes.h"

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

struct SpikeReplayRequest {
  std::optional<Index> step = {};  ///< none: the first of the event furthest out
  /// Steps away from it whose batches are evaluated on its state, and on whose states its batch is.
  /// What lies before step 1 is left out, and states after the last logged step.
  std::vector<Index> batches = {-3, -2, -1, 0, 1, 2, 3};
  std::vector<Index> states = {-3, -2, -1};
  std::function<void(const std::string&)> say = [](const std::string&) {};  ///< progress, a line
};

/// Loss and gradient norm of one state on one batch, judged as if they were those of the step.
struct ReplayTrial {
  Index state = 0;  ///< the weights before this step
  Index batch = 0;  ///< the batch of this step
  double loss = 0, grad_norm = 0;
  stats::SpikeVerdict loss_verdict, grad_verdict;  ///< by the window before the replayed step
};

enum class Cause { batch, state, both, undecided };

constexpr auto names_of(Cause) {
  using enum Cause;
  return std::to_array<Named<Cause>>({{"the batch", batch},
                                      {"the state", state},
                                      {"both: it takes this batch on this state", both},
                                      {"not decided", undecided}});
}

/// Where the repetition differs from the run.
struct Mismatch {
  Index step = 0;
  std::string quantity;
  double logged = 0, now = 0;
};

struct SpikeReplay {
  std::filesystem::path dir;
  std::string rule;  ///< its name
  Index step = 0;
  std::string origin;                ///< where training began again
  Index retrained = 0;               ///< steps taken, each with the logged loss and gradient norm
  std::optional<Mismatch> mismatch;  ///< then there is nothing after it
  std::vector<ReplayTrial> trials;   ///< that of the step itself first, then by state and batch
  /// Trials that are spikes, in a quantity in which the step is one: of other batches with its
  /// state, and of its batch with earlier states. Later states have seen the step itself.
  Index other_batches = 0, other_batches_spike = 0;
  Index earlier_states = 0, earlier_states_spike = 0;
  Cause cause = Cause::undecided;
};

/// The cause, from how many others spike too. "Most" is at least two thirds, "few" at most a third:
///   batch      few other batches do, its batch does on most earlier states
///   state      most other batches do, its batch does on few earlier states
///   both       few do either way: it takes this batch on this state
///   undecided  anything else, or nothing to compare with, or the step is not a spike
Cause cause_of(Index other_batches, Index other_batches_spike, Index earlier_states,
               Index earlier_states_spike);

/// Writes nothing into the run. Throws as open_recorded, worst_spike and restore_to_step do, and
/// UsageError for a step that the run did not log.
SpikeReplay replay_spike(const std::filesystem::path& run, const SpikeReplayRequest& request = {});

/// What `difftape replay` prints.
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

  /// Whether every number has the recorded bits and the same op and parameter were first.
  bool identical() const;
};

/// Throws MissingInput; DataError for a file that is damaged, no crash dump, or of the other
/// precision; ConfigError if this machine cannot multiply as train.precision asks.
CrashReplay replay_crash(const std::filesystem::path& path);

/// What `difftape replay` prints.
std::string to_text(const CrashReplay& replay);

}  // namespace difftape::app
