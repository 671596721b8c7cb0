#pragma once
// What a run does about a spike before it changes the weights (optim.on_spike). The rules are those
// of train/stats/spikes.h with their own numbers, whatever log.spike_rule says: how a run is judged
// does not change it.

#include <nlohmann/json.hpp>

#include "optim/optim_config.h"
#include "train/stats/spikes.h"

namespace difftape::run {

/// The whole state of a detector, for a checkpoint.
nlohmann::json state_of(const stats::SpikeDetector& detector);
/// Gives a detector of the same rule the state that state_of() took from another.
void restore_state(stats::SpikeDetector& detector, const nlohmann::json& state);

class SpikeGuard {
 public:
  explicit SpikeGuard(OnSpike on_spike);

  /// The factor on the gradient of the next step, from its loss and its gradient norm, which are
  /// finite, and those of the steps before it; 1 if there is no spike.
  ///   zclip      min(1, v / (norm + 1e-6)) with v what ZClip clips a spiking norm to
  ///   skip_step  0 if the loss or the norm is a spike by olmo_core: the step is to change nothing
  double scale(double loss, double grad_norm);

  /// Whether optim.on_spike is anything but none.
  bool active() const { return on_spike_ != OnSpike::none; }
  /// For checkpoints.
  nlohmann::json state() const;
  void restore(const nlohmann::json& state);

 private:
  OnSpike on_spike_;
  stats::SpikeDetector losses_, norms_;
};

}  // namespace difftape::run
