#pragma once
// One row of the attention maps: what happens between the products. Rows are given by their first
// element and a count that is a multiple of kLanes; scores are scaled already, hidden keys hold
// -inf and get probability 0.

#include "core/lanes.h"

namespace difftape::attention {

/// What backward needs to repeat a row: its largest score (or sink), and the reciprocal of its sum
/// of exp(score - max), the sink included.
struct RowStats {
  real max, inverse_sum;
};

/// The extra logit of a row: none, or one that takes part in max and sum.
struct Sink {
  bool present = false;
  real logit = 0;
  /// The probability it takes from the keys, 0 if absent.
  real probability(const RowStats& stats) const;
};

/// scores := exp(score - max), not yet divided by their sum.
RowStats softmax_numerators(real* scores, Index count, const Sink& sink);

/// numerators := their probabilities times `coefficient`.
void normalise(real* numerators, Index count, const RowStats& stats, real coefficient);

/// first := P1 - lambda P2 from the numerators of both maps. Exactly 0 for equal maps and
/// lambda 1, exactly P1 for lambda 0.
void subtract_maps(real* first, const real* second, Index count, const RowStats& stats1,
                   const RowStats& stats2, real lambda);

/// scores := the probabilities that forward computed, bit for bit; returns
/// r = sum of P o dP, dp being the gradient of the probabilities.
real repeat_softmax(real* scores, const real* dp, Index count, const RowStats& stats);

/// p := factor P o (dP - r), where factor is scale times coefficient; dp := coefficient P.
void softmax_backward(real* p, real* dp, Index count, real r, real factor, real coefficient);

/// Both maps over one dP: p1 := scale P1 o (dP - r1), p2 := -lambda scale P2 o (dP - r2),
/// dp := P1 - lambda P2.
void differential_backward(real* p1, real* p2, real* dp, Index count, real r1, real r2, real scale,
                           real lambda);

}  // namespace difftape::attention
