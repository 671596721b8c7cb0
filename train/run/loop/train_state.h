#pragma once
// State of a run during training: model, data, optimizer and schedule. Restores it from a run
// directory.

#include <filesystem>
#include <future>
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

namespace difftape::run {

/// A batch in the layout that `LanguageModel::loss` expects.
struct ModelInput {
  std::vector<std::int32_t> tokens, targets;  // (B, T)
  DocumentOffsets starts;
};

/// Checkpoint that provided the initial weights.
struct WeightsOrigin {
  std::filesystem::path checkpoint;
  Index step = 0;
  std::string digest;  ///< digest in the first line of the file
};

struct TrainState {
  /// Builds the state at step 0 with parameters drawn from run.seed, while another thread makes the
  /// dataset. Throws everything that make_dataset throws.
  explicit TrainState(const Config& config);
  /// Builds the state with the given data.
  TrainState(const Config& config, std::unique_ptr<Dataset> data);

  /// Returns the loss of one batch on a tape. Fills `terms` with its parts and notifies `observer`
  /// of the layers, unless null.
  Var loss(Tape& tape, const Batch& batch, LossTerms* terms = nullptr,
           Observer* observer = nullptr);
  /// Returns the observer of the layers in a training step, null if there is none.
  Observer* step_observer();
  /// Validates on the first batches_to_validate() batches. `events` receive the events of the
  /// tapes. Throws ValidationStopped if `stopped` returns true after the last step.
  Validation validate(const Tape::Events& events = {});
  /// Measures the model (train/run/diagnostics) without changing it.
  Diagnostics diagnose();

  /// Returns the metadata of a checkpoint after `step` steps.
  CheckpointMeta meta(Index step) const;
  void save(const std::filesystem::path& directory) const;
  /// Restores a checkpoint. Throws ConfigError if its run cannot continue with this configuration
  /// (train/run/loop/continuation.h), and DataError if it has the other precision or other data.
  void restore(const std::filesystem::path& checkpoint);
  /// Copies the state of process 0 to all processes. All must call it while process 0 has the whole
  /// optimizer state.
  void scatter();

  Config config;
  FlushSubnormals flush_subnormals;  ///< applies train.flush_subnormals for this lifetime
  EngineScope engine;                ///< applies train.gemm likewise
  Precision precision;
  LanguageModel model;
  std::optional<QkClip> qk_clip;         ///< with model.attention.qk_clip_threshold
  std::optional<LoadBalancer> balancer;  ///< with model.moe.router_bias_update_rate
  Optimizer optimizer;
  std::unique_ptr<Dataset> data;
  std::vector<TreeSum> gradient_sums;  ///< by parameter, over the leaves of this process
  Schedule schedule;
  std::function<bool()> stopped;  ///< asked during the validation after the last step, unless empty
  Index step = 0;                 ///< number of completed steps
  std::optional<WeightsOrigin> origin;  ///< set if train.init_from gave the initial weights

 private:
  TrainState(const Config& config, std::future<std::unique_ptr<Dataset>> data);
  /// Takes `done` steps as completed.
  void restore_step(Index done);
  ModelInput input_of(const Batch& batch) const;
};

/// Loads the weights of train.init_from, if any, into a state at step 0. Throws MissingInput, and
/// everything that Checkpoint throws.
void take_initial_weights(TrainState& state);
/// Loads the initial weights of a run before its first step. Also throws DataError if the weights
/// or the data have changed since the run began.
void restore_start(TrainState& state, const RunDir& run);

/// Restores a run from its newest checkpoint, or restarts it if there is none yet, and drops later
/// metrics. Throws everything that reading them throws, and ConfigError if there is no checkpoint
/// and the configuration differs.
void resume(TrainState& state, const RunDir& run);

}  // namespace difftape::run
