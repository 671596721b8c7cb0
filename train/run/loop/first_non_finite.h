#pragma once
// Which op of a step or a validation was the first to give what is not finite.

#include <string>

#include "train/run/loop/step.h"

namespace difftape::run {

/// Computes loss and gradients of a step once more, on tapes that are watched. Returns the first op
/// whose value is not finite, "attention in model.layers.2.self_attn, forward"; if all of a
/// micro-batch are, the first whose pullback added to a gradient what is not finite, as in
/// "linear in lm_head, backward". Empty if there is none: a mean or a norm alone overflowed.
std::string first_non_finite_op(TrainState& state, const MicroBatches& batches);

/// The same for a validation, which has no backward pass.
std::string first_non_finite_op_in_validation(TrainState& state);

}  // namespace difftape::run
