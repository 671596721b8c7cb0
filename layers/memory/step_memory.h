#pragma once
// The memory that a training step needs, counted from the configuration without running it.

#include "core/gemm.h"
#include "layers/activation_checkpointing.h"
#include "layers/model_config.h"

namespace difftape {

/// What decides the memory of a step besides the model.
struct StepShape {
  Index batch = 1, seq = 1;
  ActivationCheckpointing recompute = ActivationCheckpointing::none;
  Index grad_accumulation = 1;
  Precision precision = Precision::full;
};

/// Bytes, all of the same moment: when the step holds most. Tensors only, in the `real` of this
/// program, with the threads it would use.
struct StepMemory {
  Index weights = 0;    ///< with the rotary table
  Index gradients = 0;  ///< of the weights
  Index moments = 0;    ///< AdamW's two
  Index activations = 0;
  Index activation_gradients = 0;  ///< with those of the loss, the head's included
  Index scratch = 0;               ///< packed operands, attention scores, logits of a chunk
  Index kept = 0;  ///< activations between forward and backward; not a part of the total
  Index total() const {
    return weights + gradients + moments + activations + activation_gradients + scratch;
  }
};

/// Throws ConfigError as LanguageModel does.
StepMemory step_memory(const ModelConfig& config, const StepShape& shape);

}  // namespace difftape
