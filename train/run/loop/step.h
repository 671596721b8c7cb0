#pragma once
// Takes one optimizer step with its measurements, formats them as metrics, and finds the first op
// with a non-finite result.

#include <functional>
#include <optional>
#include <string>

#include "core/real.h"
#include "optim/grad_norm.h"
#include "train/run/loop/train_state.h"
#include "train/run/records/run_files.h"

namespace difftape::run {

/// Results of one step.
struct Step {
  Index step = 0;  ///< number of the step, from 1
  double lr = 0;
  double loss = 0;           ///< nats per scored token of the step, before the update
  double squared_log_z = 0;  ///< mean log(sum exp(logits))^2, likewise
  double router_loss = 0;    ///< weighted losses of all routers, likewise
  double val_loss = kNaN;    ///< after the update, if validated
  std::vector<std::pair<std::string, double>> val_metrics;  ///< Validation::metrics, with val_loss
  GradNorms norms;                                          ///< before clipping
  std::optional<QkClipped> qk_clip;        ///< with model.attention.qk_clip_threshold
  std::optional<UpdateNorms> update;       ///< if diagnostics were due
  std::optional<Diagnostics> diagnostics;  ///< after the update, if they were due
  double seconds = 0;                      ///< time of batch, forward, backward and update
  std::optional<Divergence> diverged;
};

/// Returns true at every `interval`-th step and at the last one; interval 0 means only at the last.
bool due(Index step, Index interval, Index steps);
/// Returns true if diagnostics are measured after this step: the first, every
/// log.diagnostics_interval-th, and the last.
bool diagnoses(const Config& config, Index step);
/// Callback that returns micro-batch `micro` of a step, from 0.
using MicroBatches = std::function<Batch(Index micro)>;
/// Returns the micro-batches of step `number`, counted from 1. The state must outlive them.
MicroBatches batches_of(const TrainState& state, Index number);

/// Loss terms of a step: means over its scored tokens. A term of the routers is a mean over the
/// micro-batches, each weighted by its number of scored tokens.
struct StepTerms {
  double loss = 0;           ///< cross-entropy without z-loss, nats per scored token
  double squared_log_z = 0;  ///< mean log(sum exp(logits))^2
  double router_loss = 0;    ///< LossTerms::router_loss
};
/// Computes the loss terms of step state.step + 1 and leaves its gradients, including the z-loss,
/// in the parameters that this process owns (optim/shards.h). Both are means over the scored tokens
/// of all train.gradient_accumulation_steps micro-batches, so the cut into micro-batches does not
/// change them. Each process computes a contiguous part of the leaves of the step
/// (train/run/loop/leaves.h). Gradients are summed along a tree over all leaves (optim/tree_sum.h),
/// so the number of processes does not change them. `events` receive the events of all tapes of
/// this process. Throws DataError if no target of the step is scored.
StepTerms accumulate_gradients(TrainState& state, const MicroBatches& batches,
                               const Tape::Events& events = {});

/// Takes the next step: gradients averaged over the scored tokens, clipping and update. If the loss
/// or a gradient is not finite, the parameters do not change and `diverged` is set; the gradients
/// are then computed again to find the op. `events` receive the events of all tapes.
Step train_step(TrainState& state, const Tape::Events& events = {});

/// Takes the next step with the validation and diagnostics due after it.
Step take_logged_step(TrainState& state);
/// Returns the metrics of a step, with `speed` inserted, in the order of metrics.jsonl.
Metrics metrics_of(const TrainState& state, const Step& step, const Metrics& speed = {});
/// Returns the validation loss of each domain, "a 1.2345, b 0.9876"; empty without domains.
std::string text_of_domains(const Step& step);

/// Returns the number of tokens per step.
Index tokens_per_step(const Config& config);

/// Computes loss and gradients of a step again and returns the first op with a non-finite value,
/// such as "attention in model.layers.2.self_attn, forward". If all values of a leaf are finite,
/// returns the first op whose pullback gave a non-finite gradient, such as "linear in lm_head,
/// backward". Empty if only a mean or a norm overflowed.
std::string first_non_finite_op(TrainState& state, const MicroBatches& batches);

/// Returns the first op with a non-finite value in a validation, which has no backward pass.
std::string first_non_finite_op_in_validation(TrainState& state);

}  // namespace difftape::run
