#pragma once
// What a query sees, as a tensor: for attention that is composed of primitives. The fused kernel
// has no such tensor.

#include "core/attention/attention.h"

namespace difftape {

/// (B, T, T): 0 where query t sees key s, itself included, and -inf where it does not. Added to the
/// scores before a softmax.
Tensor attention_mask(Index batch, Index seq, const Visibility& visible);

}  // namespace difftape
