#pragma once
// One optimizer step with all that is measured at it, how that is logged, and the first op whose
// result is not finite.

#include <functional>
#include <optional>
#include <string>

#include "core/real.h"
#include "optim/grad_norm.h"
#include "train/run/loop/train_state.h"
#include "train/run/records/run_files.h"

namespace difftape::run {

/// What one step did.
struct Step {
  Index step = 0;  ///< its number, from 1
  double lr = 0;
  double loss = 0;           ///< nats per token, mean over the batch, before the update
  double squared_log_z = 0;  ///< log(sum exp(logits))^2, likewise
  double router_loss = 0;    ///< weighted losses of all routers, likewise
  double val_loss = kNaN;    ///< after the update, if validated
  std::vector<std::pair<std::string, double>> val_metrics;  ///< Validation::metrics, with val_loss
  GroupLosses group_losses;                                 ///< of held-out text, at the last step
  GradNorms norms;                                          ///< before clipping
  std::optional<QkClipped> qk_clip;        ///< of model.attention.qk_clip_threshold
  double spike_scale = 1;                  ///< of optim.on_spike; 0: nothing was changed
  std::optional<UpdateNorms> update;       ///< of a step at which diagnostics are due
  std::optional<Diagnostics> diagnostics;  ///< after the update, if they were due
  double seconds = 0;                      ///< batch, forward, backward and update
  bool spike = false;                      ///< the loss or the gradient norm is a spike
  std::optional<Divergence> diverged;
};

/// True at every `interval`-th step and at the last one; interval 0 means only at the last.
bool due(Index step, Index interval, Index steps);
/// Whether diagnostics are measured after this step: the first, when the model is almost as
/// initialised, every log.diagnostics_interval-th, and the last.
bool diagnoses(const Config& config, Index step);
/// The micro-batches of a step by their number, from 0.
using MicroBatches = std::function<Batch(Index micro)>;
/// Those of step `number`, counted from 1, in the data of the state, which must outlive them.
MicroBatches batches_of(const TrainState& state, Index number);

/// Means over the micro-batches of a step.
struct StepTerms {
  double loss = 0;           ///< cross-entropy in nats per token, without a z-loss
  double squared_log_z = 0;  ///< log(sum exp(logits))^2 a token
  double router_loss = 0;    ///< LossTerms::router_loss
};
/// Terms of the loss of train.gradient_accumulation_steps micro-batches; their mean gradients,
/// those of the z-loss among them, are left in the parameters that this process answers for
/// (optim/shards.h). Nothing else changes. `events` see all tapes of this process. Each process
/// that trains computes its share of the micro-batches, which follow one another; their gradients
/// are added up in the order of a tree over all of them (optim/tree_sum.h), so that it does not
/// matter how many do.
StepTerms accumulate_gradients(TrainState& state, const MicroBatches& batches,
                               const Tape::Events& events = {});

/// Takes the next step: gradients averaged over the micro-batches, clipping, update, unless
/// optim.on_spike says to skip it. If the loss or a gradient is not finite, the parameters are left
/// as they were and `diverged` says so; the gradients are then computed once more to find the op.
/// `events` see all tapes.
Step train_step(TrainState& state, const Tape::Events& events = {});

/// Takes the next step, and the validation and the diagnostics that are due after it.
Step take_logged_step(TrainState& state);
/// Returns what is logged of it, in the order of metrics.jsonl; `speed` goes among them.
Metrics metrics_of(const TrainState& state, const Step& step, const Metrics& speed = {});
/// Returns the validation loss of each domain, "a 1.2345, b 0.9876"; empty if they are not told
/// apart.
std::string text_of_domains(const Step& step);

/// Tokens that one step trains on.
Index tokens_per_step(const Config& config);

/// Computes loss and gradients of a step once more, on tapes with events. Returns the first op
/// whose value is not finite, "attention in model.layers.2.self_attn, forward"; if all of a
/// micro-batch are, the first whose pullback added to a gradient what is not finite, as in
/// "linear in lm_head, backward". Empty if there is none: a mean or a norm alone overflowed.
std::string first_non_finite_op(TrainState& state, const MicroBatches& batches);

/// The same for a validation, which has no backward pass.
std::string first_non_finite_op_in_validation(TrainState& state);

}  // namespace difftape::run
