#pragma once
// What decides a question about paired differences beside Student's t: equivalence, the exact test
// of signs, looks at an experiment that goes on, and how many pairs a decision needs.

#include <array>
#include <functional>
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

/// Three looks at an experiment, after 4, 8 and 12 pairs, and the p values below which each stops
/// it: together wrong once in twenty, or once in a hundred, where there is no difference (O'Brien
/// and Fleming's shape, for t-tests of so few pairs; tests/train/stats/decision_test.cpp simulates
/// both).
struct Look {
  Index pairs;
  double level, level_of_hundredth;  ///< for 0.05 and for 0.01 in all
};
inline constexpr std::array<Look, 3> kLooks{
    {{4, 0.0005, 0.00002}, {8, 0.014, 0.0018}, {12, 0.043, 0.0092}}};

/// The p value that decides `pairs` pairs if they are looked at as kLooks says: the level in all at
/// which the last look they have reached would stop, its logarithm linear in that of p between and
/// beyond the two levels of the look. NaN before the first.
double sequential_p(double p, Index pairs);

/// The power of a two-sided paired t-test at level alpha: how often it finds a true mean difference
/// `effect`, where single differences spread with standard deviation `spread` > 0, with `pairs`
/// >= 2. By the noncentral t distribution, both tails.
double paired_power(double effect, double spread, Index pairs, double alpha);
/// How often a one-sided test finds a true mean difference above 0; of one below 0 it is a mistake.
double one_sided_power(double effect, double spread, Index pairs, double alpha);
/// How often equivalence within +-margin is found where the true mean difference is `effect`.
double equivalence_power(double margin, double spread, Index pairs, double alpha,
                         double effect = 0);
/// The fewest pairs of 2 to `most` with enough power, which more pairs have too; 0: there are none.
Index fewest_pairs(const std::function<double(Index pairs)>& power_of, double power,
                   Index most = 1000);

}  // namespace difftape::stats
