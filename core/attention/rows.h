#pragma once
// One row of the attention maps: what happens between the products. Rows are given by their first
// element and a count that is a multiple of kSimdWidth; scores are scaled already, masked keys hold
// -inf and get probability 0.

#include "core/simd.h"

namespace difftape::attention {

/// What backward needs to compute a row again: its largest score (or sink), and the reciprocal of
/// its sum of exp(score - max), the sink included.
struct SoftmaxStats {
  real max, inverse_sum;
};

/// The extra logit of a row: none, or one that takes part in max and sum.
struct Sink {
  bool present = false;
  real logit = 0;
  /// The probability it takes from the keys, 0 if absent.
  real probability(const SoftmaxStats& stats) const;
};

/// x := x times factors.
void multiply(real* x, const real* factors, Index count);

/// scores := exp(score - max), not yet divided by their sum.
SoftmaxStats softmax_numerators(real* scores, Index count, const Sink& sink);

/// numerators := their probabilities times `coefficient`.
void normalise(real* numerators, Index count, const SoftmaxStats& stats, real coefficient);

/// first := A1 - lambda A2 from the numerators of both maps. Exactly 0 for equal maps and
/// lambda 1, exactly A1 for lambda 0.
void subtract_maps(real* first, const real* second, Index count, const SoftmaxStats& stats1,
                   const SoftmaxStats& stats2, real lambda);

/// scores := the probabilities that forward computed, bit for bit; returns
/// r = sum of P o dA, dp being the gradient of the probabilities.
real recompute_softmax(real* scores, const real* dp, Index count, const SoftmaxStats& stats);

/// p := factor P o (dA - r), where factor is scale times coefficient; dp := coefficient P.
void softmax_backward(real* p, real* dp, Index count, real r, real factor, real coefficient);

/// Both maps over one dA: p1 := scale A1 o (dA - r1), p2 := -lambda scale A2 o (dA - r2),
/// dp := A1 - lambda A2.
void differential_backward(real* p1, real* p2, real* dp, Index count, real r1, real r2, real scale,
                           real lambda);

}  // namespace difftape::attention
