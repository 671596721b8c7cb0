#pragma once
// The state of a run while it trains: model, data, optimiser, spike detectors and guard; and how it
// is restored from a run directory that is to be continued.

#include <filesystem>
#include <memory>
#include <optional>

#include "core/parallel.h"
#include "core/real.h"
#include "layers/attention/qk_clip.h"
#include "layers/language_model.h"
#include "layers/load_balancer.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "optim/tree_sum.h"
#include "train/run/checkpoint/checkpoint.h"
#include "train/run/config/config.h"
#include "train/run/diagnostics/diagnose.h"
#include "train/run/inference/validation.h"
#include "train/run/records/metrics.h"
#include "train/run/records/run_files.h"
#include "train/stats/spikes.h"

namespace difftape::run {

/// A batch as the model takes it.
struct ModelInput {
  std::vector<std::int32_t> tokens, targets;  // (B, T)
  DocumentOffsets starts;
};

/// The lowest loss of the validations so far.
struct BestValidation {
  Index step = 0;  ///< 0: none yet
  double loss = kInfinity;
};

/// The checkpoint that weights came from.
struct WeightsOrigin {
  std::filesystem::path checkpoint;
  Index step = 0;
  std::string digest;  ///< of the file, as in its first line
};

/// Acts on a spike before the weights change (optim.on_spike). The rules are those of
/// train/stats/spikes.h with their own numbers, whatever log.spike_rule says: how a run is judged
/// does not change it.
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

struct TrainState {
  /// Builds all of it at step 0, parameters drawn from run.seed. Throws what the data throws.
  explicit TrainState(const Config& config);
  /// The same on data from elsewhere.
  TrainState(const Config& config, std::unique_ptr<Dataset> data);

  /// Loss of one batch on a tape; `terms`, if given, is what it is made of; an observer, if given,
  /// sees the layers.
  Var loss(Tape& tape, const Batch& batch, LossTerms* terms = nullptr,
           Observer* observer = nullptr);
  /// Returns the observer of the layers in a training step, null if there is none.
  Observer* step_observer();
  /// Of the first batches_to_validate() validation batches. `events` see the tapes.
  Validation validate(const Tape::Events& events = {});
  /// Measures the model as it is (train/run/diagnostics); changes nothing.
  Diagnostics diagnose();

  /// The metadata of a checkpoint written now, after `step` steps.
  CheckpointMeta meta(Index step) const;
  void save(const std::filesystem::path& directory) const;
  /// Continues from a checkpoint. Throws ConfigError if its run cannot go on with this
  /// configuration (train/run/loop/continuation.h), DataError if it is of the other precision or
  /// the data changed.
  void restore(const std::filesystem::path& checkpoint);
  /// The state of processes that train together becomes that of process 0. All must call it;
  /// process 0 holds all of the optimizer's.
  void scatter();

  Config config;
  FlushSubnormals flush_subnormals;  ///< as train.flush_subnormals says, as long as this lives
  EngineScope engine;                ///< likewise as train.gemm says
  Precision precision;
  std::unique_ptr<Dataset> data;
  LanguageModel model;
  std::optional<QkClip> qk_clip;         ///< of model.attention.qk_clip_threshold
  std::optional<LoadBalancer> balancer;  ///< of model.moe.router_bias_update_rate
  Optimizer optimizer;
  std::vector<TreeSum> gradient_sums;  ///< of each parameter, over this process's micro-batches
  Schedule schedule;
  stats::SpikeDetector loss_spikes, grad_spikes;
  SpikeGuard guard;
  /// Gradient norms of the steps done, before clipping; NaN where a resumed run knows none.
  std::vector<double> grad_norms;
  Index step = 0;                       ///< steps done
  BestValidation best;                  ///< counted if train.keep_best says so
  std::optional<WeightsOrigin> origin;  ///< of the weights at step 0, if they were taken

 private:
  /// What meta() has of a run that has done `at_step` steps.
  void restore_extra(Index at_step, const nlohmann::json& extra);
  ModelInput input_of(const Batch& batch) const;
};

/// The step of the checkpoint that a resume restores, by its name; 0 if there is none yet. Throws
/// MissingInput if `latest` names a file that is not there, DataError if its name has no step.
Index resume_step(const std::filesystem::path& dir);

/// Gives a state at step 0 the weights that train.init_from names; nothing if it names none. Throws
/// MissingInput, and what Checkpoint throws.
void take_initial_weights(TrainState& state);
/// The same for a run before its first step. Throws DataError too if its weights or its data are
/// others than when it began.
void restore_start(TrainState& state, const RunDir& run);

/// Restores the state of a run: its latest checkpoint, or, before the first one, nothing but the
/// configuration, from which the same steps follow again. Drops the metrics after it. Throws what
/// reading them throws, and ConfigError if there is no checkpoint and the configuration is another.
void restore(TrainState& state, const RunDir& run);

}  // namespace difftape::run
