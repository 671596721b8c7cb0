#pragma once
// Was a spike caused by the data, the state, or both? Trains a run again up to a step, bit for bit,
// and evaluates the batch of that step on other states, and other batches on its state.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/stats/spikes.h"

namespace difftape::app {

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

}  // namespace difftape::app

namespace difftape {

template <>
inline constexpr auto kNames<app::Cause> =
    std::to_array<Named<app::Cause>>({{"the batch", app::Cause::batch},
                                      {"the state", app::Cause::state},
                                      {"both: it takes this batch on this state", app::Cause::both},
                                      {"not decided", app::Cause::undecided}});

}  // namespace difftape

namespace difftape::app {

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
///   undecided  anything else, or nothing to compare with, or the step is no spike
Cause cause_of(Index other_batches, Index other_batches_spike, Index earlier_states,
               Index earlier_states_spike);

/// Writes nothing into the run. Throws as open_recorded, worst_spike and restore_to_step do, and
/// UsageError for a step that the run did not log.
SpikeReplay replay_spike(const std::filesystem::path& run, const SpikeReplayRequest& request = {});

/// What `difftape replay` prints.
std::string to_text(const SpikeReplay& replay);

}  // namespace difftape::app
