#pragma once
// Computes the memory of a training step as the peak of the memory pool in a dry run of the step.

#include <cstdint>
#include <optional>

#include "train/run/config/config.h"

namespace difftape::run {

/// Memory by use at the peak of a step, bytes. It counts tensors in the precision of this program,
/// for its number of threads.
struct StepMemory {
  Index weights = 0;    ///< includes the rotary table and the pool's rounding of all sizes
  Index gradients = 0;  ///< includes partial sums over leaves
  Index moments = 0;    ///< optimizer state
  Index activations = 0;
  Index activation_gradients = 0;  ///< includes the gradients of the loss and the head
  Index scratch = 0;               ///< packed operands, attention scores, logits of a chunk
  Index total() const {
    return weights + gradients + moments + activations + activation_gradients + scratch;
  }
};

/// Returns the memory of a step after the first, with every target scored. It reads no data,
/// allocates no tensors, and does not need a machine that supports train.precision. Throws
/// ConfigError like LanguageModel, or if the step exceeds the address space of a process.
StepMemory step_memory(const Config& config);

/// Throws ConfigError with a remedy if `processes` concurrent runs of this configuration need more
/// than `free` bytes. Does nothing if `free` is unknown.
void require_memory(const Config& config, Index processes, std::optional<std::uint64_t> free);

}  // namespace difftape::run
