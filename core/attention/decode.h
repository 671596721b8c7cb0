#pragma once
// Attention of new tokens to the cached keys and values, for generation. Computes attention_forward
// for few queries and reads keys and values once for all query heads that share them.
// Block-sparse attention reads the chosen blocks only.

#include "core/attention/attention.h"
#include "core/attention/cache.h"

namespace difftape {

/// Returns the output (B, n, output heads, E) of the last n tokens of the cache, whose queries are
/// `in.q` (B, n, query_heads, D). Does not read in.k, in.v and in.precision. in.visible holds the
/// position where the document of each of the n tokens begins. Updates cache.selection at the first
/// token of a block; earlier tokens need keep_selection (selection.h). Throws ShapeError.
Tensor attention_cached(const AttentionInputs& in, KvCache& cache);

}  // namespace difftape
