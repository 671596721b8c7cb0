#pragma once
// Soft-capping of logits (Gemma Team 2024, "Gemma 2", section 2).

#include "core/real.h"

namespace difftape {

/// x := cap tanh(x / cap) for n elements at any address, cap > 0; slopes := the derivative, 1 -
/// tanh^2(x / cap), unless null.
void softcap(real* x, Index n, real cap, real* slopes = nullptr);

}  // namespace difftape
