#pragma once
// The maps of kSimdWidth neighbouring queries: what happens between the products. Scores lie a row
// a key, so that a vector register holds one key of all of these queries, its lanes: what is summed
// over keys is never summed within a register. Every array begins at a key and the first lane and
// has `keys` vectors, kBlockRows numbers apart; what is summed or compared goes on from `so_far`.
// Scores are scaled already, masked keys hold -inf and get probability 0.

#include "core/gemm.h"
#include "core/simd.h"

namespace difftape::attention {

/// Queries that are worked on together, side by side in a row of scores: what is added to the
/// gradients of a key is added for all of them at once.
inline constexpr Index kBlockRows = kPanel;

/// SoftmaxStats of each lane.
struct LaneStats {
  Simd max, inverse_sum;
};

/// x := x times factors.
void multiply(real* x, const real* factors, Index keys);

/// The largest score of each lane, or `so_far` if that is larger.
Simd largest_scores(const real* scores, Index keys, const Simd& so_far);

/// scores := exp(score - max), not yet divided by their sum; returns `so_far` and their sum.
Simd softmax_numerators(real* scores, Index keys, const Simd& max, const Simd& so_far);

/// x := factor x.
void scale(real* x, Index keys, const Simd& factor);

/// first := first - ratio second, the numerators of both maps. Exactly 0 for equal maps and ratio
/// 1, exactly the first for ratio 0.
void subtract(real* first, const real* second, Index keys, const Simd& ratio);

/// scores := the probabilities of the maps of forward; returns `so_far` and the sum of P o dA, dp
/// being the gradient of the probabilities.
Simd recompute_softmax(real* scores, const real* dp, Index keys, const LaneStats& stats,
                       const Simd& so_far);

/// p := factor P o (dA - r), where factor is scale times coefficient; dp := coefficient P.
void softmax_backward(real* p, real* dp, Index keys, const Simd& r, const Simd& factor,
                      const Simd& coefficient);

/// Both maps over one dA: p1 := scale A1 o (dA - r1), p2 := -lambda scale A2 o (dA - r2),
/// dp := A1 - lambda A2.
void differential_backward(real* p1, real* p2, real* dp, Index keys, const Simd& r1, const Simd& r2,
                           real scale, const Simd& lambda);

}  // namespace difftape::attention
