#pragma once
// What decides a question about paired differences beside Student's t: equivalence, the exact test
// of signs, and the power of these tests before any run.

#include <span>

#include "core/real.h"
#include "train/stats/interval.h"

namespace difftape::stats {

/// Two one-sided t-tests (Schuirmann 1987) of "the true mean difference is not within +-margin":
/// the larger of the two p values. Below alpha exactly where the interval of 1 - 2 alpha lies
/// within the margin. NaN with fewer than two pairs or a margin that is not positive; least_p or 1
/// where all differences are equal.
double equivalence_p(const PairedDifference& difference, double margin);

/// One-sided t-test of a true mean difference above `from`. NaN with fewer than two pairs; least_p
/// or 1 where all differences are equal.
double upper_p(const PairedDifference& difference, double from);

/// 2^(1-n): where all differences are equal no spread is known, and this is what signs alone say.
double least_p(Index pairs);

/// Fisher's exact two-sided test: of all 2^n ways to give the differences signs, the share whose
/// sum is at least as far from 0 as what was found. 2^(1-n) at least. NaN without differences, with
/// a NaN among them, and for more than kMostSignFlips.
double sign_flip_p(std::span<const double> differences);
inline constexpr std::size_t kMostSignFlips = 24;

/// The power of a two-sided t-test at level alpha: how often it finds a true difference `effect`
/// where the estimate has the standard error `error` > 0, with `degrees` > 0. By the noncentral t
/// distribution, both tails.
double two_sided_power(double effect, double error, double degrees, double alpha);
/// How often a one-sided test finds a true difference above 0; of one below 0 it is a mistake.
double one_sided_power(double effect, double error, double degrees, double alpha);
/// How often equivalence within +-margin is found where there is no true difference.
double equivalence_power(double margin, double error, double degrees, double alpha);

}  // namespace difftape::stats
