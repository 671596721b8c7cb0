#pragma once
// Softmax arithmetic of kSimdWidth neighboring queries, between the products. Scores have one row
// per key, so that a vector register holds one key of these queries and no sum over keys runs
// within a register. An array points to the first lane of its first key and has `keys` vectors,
// kBlockRows elements apart. Sums and maxima continue from `so_far`. Scores are scaled; masked keys
// hold -inf and get probability 0.

#include "core/gemm.h"
#include "core/simd.h"

namespace difftape::attention {

/// Queries of one block, side by side in a row of scores: the gradient of a key adds all of them at
/// once.
inline constexpr Index kBlockRows = kPanel;

/// SoftmaxStats of each lane.
struct LaneStats {
  Simd max, inverse_sum;
};

/// x := x times factors.
void multiply(real* x, const real* factors, Index keys);

/// Returns the largest score of each lane, or `so_far` if that is larger.
Simd largest_scores(const real* scores, Index keys, const Simd& so_far);

/// scores := exp(score - max), not yet divided by their sum. Returns `so_far` plus their sum.
Simd softmax_numerators(real* scores, Index keys, const Simd& max, const Simd& so_far);

/// x := factor x.
void scale(real* x, Index keys, const Simd& factor);

/// first := first - ratio second, the numerators of both maps. Exactly 0 for equal maps and ratio
/// 1; exactly the first for ratio 0.
void subtract(real* first, const real* second, Index keys, const Simd& ratio);

/// scores := the probabilities of forward. Returns `so_far` plus the sum of P o dA, with dA in dp.
Simd recompute_softmax(real* scores, const real* dp, Index keys, const LaneStats& stats,
                       const Simd& so_far);

/// p := factor P o (dA - r) and dp := coefficient P, where factor is scale times coefficient.
void softmax_backward(real* p, real* dp, Index keys, const Simd& r, const Simd& factor,
                      const Simd& coefficient);

/// Both maps with one dA: p1 := scale A1 o (dA - r1), p2 := -lambda scale A2 o (dA - r2), dp := A1
/// - lambda A2.
void differential_backward(real* p1, real* p2, real* dp, Index keys, const Simd& r1, const Simd& r2,
                           real scale, const Simd& lambda);

}  // namespace difftape::attention
