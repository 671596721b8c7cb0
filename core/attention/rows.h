#pragma once
// The maps of one query, as generation has it: what happens between the products. Rows are given by
// their first element and a count that is a multiple of kSimdWidth; scores are scaled already,
// masked keys hold -inf and get probability 0.

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

/// scores := exp(score - max), not yet divided by their sum.
SoftmaxStats softmax_numerators(real* scores, Index count, const Sink& sink);

/// numerators := their probabilities times `coefficient`.
void normalise(real* numerators, Index count, const SoftmaxStats& stats, real coefficient);

/// first := A1 - lambda A2 from the numerators of both maps. Exactly 0 for equal maps and
/// lambda 1, exactly A1 for lambda 0.
void subtract_maps(real* first, const real* second, Index count, const SoftmaxStats& stats1,
                   const SoftmaxStats& stats2, real lambda);

}  // namespace difftape::attention
