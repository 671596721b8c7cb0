#pragma once
// Attention of new tokens to the keys and values kept of the tokens before them, as generation
// needs it: what attention_forward computes, for few queries, reading keys and values once for all
// query heads that share them.

#include "core/attention/attention.h"
#include "core/attention/cache.h"

namespace difftape {

/// Returns the output (B, n, output heads, E) of the last n tokens of the cache, whose queries are
/// `in.q` (B, n, query_heads, D). in.k, in.v and in.round_maps are not read. The documents of
/// in.visible are those of the n tokens: where in the sequence each begins. Throws ShapeError.
Tensor attention_cached(const AttentionInputs& in, const KvCache& cache);

}  // namespace difftape
