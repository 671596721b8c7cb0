#pragma once
// Intervals that decide claims, and the power of such decisions before any run.
//
// A claim is about a true difference d, and has one level c. With the interval of 1 - c (both tails
// c / 2) and the interval of 1 - 2 c (tails of c each):
//   "lower" or "higher": the interval of 1 - c lies below 0, or above 0.
//   "within the margin": the interval of 1 - 2 c lies between -margin and +margin.
// For any d, a wrong verdict of any kind has probability at most c:
//   d = 0: "lower" or "higher", c / 2 each.
//   0 < d <= margin: "lower", c / 2.
//   d > margin: "lower" or "within". Both need an upper end of 1 - 2 c below the margin, which has
//   probability c.
// The mirrored cases are alike. A claim of equivalence is contradicted if the interval of 1 - c
// lies beyond the margin, a claim of "not higher than the margin" if the interval of 1 - 2 c lies
// above it: one of the two verdicts is true, and the other has probability c at most. With c =
// alpha / (number of primary claims), Bonferroni's inequality bounds the probability of any wrong
// primary verdict by alpha, for any dependence between claims.
// tests/train/study/compare/claims/simulation_test.cpp simulates such studies.

#include "core/real.h"
#include "train/stats/interval.h"

namespace difftape::stats {

/// Returns the interval of an estimate with both tails at level / 2. Equal differences have no
/// spread: the interval is a point if the sign test decides at the level, else unbounded.
/// Unbounded with fewer than two pairs.
Interval interval_at(const PairedDifference& difference, double level);

/// Returns 2^(1-n), the p value of the sign test if all n differences are equal and thus have no
/// spread.
double least_p(Index pairs);

/// Returns the power of a two-sided t-test at level alpha for a true difference `effect` and an
/// estimate with the standard error `error` > 0 and `degrees` > 0 degrees of freedom. It uses both
/// tails of the noncentral t distribution.
double two_sided_power(double effect, double error, double degrees, double alpha);
/// Returns the power of a one-sided t-test for a difference above 0. For a negative `effect` it is
/// the probability of a false rejection.
double one_sided_power(double effect, double error, double degrees, double alpha);
/// Returns the probability that equivalence within +-margin is found if the true difference is 0.
double equivalence_power(double margin, double error, double degrees, double alpha);

}  // namespace difftape::stats
