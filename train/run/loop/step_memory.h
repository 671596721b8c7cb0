#pragma once
// The memory that a training step needs: the pool's peak in a dry run of the step itself.

#include <cstdint>
#include <optional>

#include "train/run/config/config.h"

namespace difftape::run {

/// Bytes, all of the same moment: when the step holds most. Tensors only, in the `real` of this
/// program, with the threads it would use.
struct StepMemory {
  Index weights = 0;    ///< with the rotary table, and what the pool rounds all of them up by
  Index gradients = 0;  ///< of the weights, with those of micro-batches that wait to be added
  Index moments = 0;    ///< what the optimiser keeps: AdamW's two
  Index activations = 0;
  Index activation_gradients = 0;  ///< with those of the loss, the head's included
  Index scratch = 0;               ///< packed operands, attention scores, logits of a chunk
  Index total() const {
    return weights + gradients + moments + activations + activation_gradients + scratch;
  }
};

/// Of a step like all but the first, with every target scored; no data are read, and
/// train.precision need not be possible on this machine. Takes no memory. Throws ConfigError as
/// LanguageModel does, and if the step is larger than the addresses of a process.
StepMemory step_memory(const Config& config);

/// Throws ConfigError, with what to change, if `distributed` that train like this at the same time
/// need more memory than `free` bytes; nothing: it is not known.
void require_memory(const Config& config, Index processes, std::optional<std::uint64_t> free);

}  // namespace difftape::run
