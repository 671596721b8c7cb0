#pragma once
// Tests of paired differences beyond Student's t: equivalence, the exact sign-flip test, the power
// of these tests before any run, and a correction for claims with two hypotheses.

#include <optional>
#include <span>
#include <vector>

#include "core/real.h"
#include "train/stats/interval.h"

namespace difftape::stats {

/// Returns the larger p value of two one-sided t-tests (Schuirmann 1987) of "the true mean
/// difference is not within +-margin". It is below alpha exactly if the 1 - 2 alpha interval lies
/// within the margin. NaN with fewer than two pairs or a margin <= 0; least_p or 1 if all
/// differences are equal.
double equivalence_p(const PairedDifference& difference, double margin);

/// Returns the p value of a one-sided t-test for a true mean difference above `from`. NaN with
/// fewer than two pairs; least_p or 1 if all differences are equal.
double upper_p(const PairedDifference& difference, double from);

/// Returns 2^(1-n), the p value of the sign test if all n differences are equal and thus have no
/// spread.
double least_p(Index pairs);

/// Returns the p value of Fisher's exact two-sided sign-flip test: the fraction of all 2^n sign
/// assignments whose sum is at least as far from 0 as the observed sum. It is at least 2^(1-n). NaN
/// without differences, with a NaN among them, and for more than kMostSignFlips.
double sign_flip_p(std::span<const double> differences);
inline constexpr std::size_t kMostSignFlips = 24;

/// Returns the power of a two-sided t-test at level alpha for a true difference `effect` and an
/// estimate with the standard error `error` > 0 and `degrees` > 0 degrees of freedom. It uses both
/// tails of the noncentral t distribution.
double two_sided_power(double effect, double error, double degrees, double alpha);
/// Returns the power of a one-sided t-test for a difference above 0. For a negative `effect` it is
/// the probability of a false rejection.
double one_sided_power(double effect, double error, double degrees, double alpha);
/// Returns the probability that equivalence within +-margin is found if the true difference is 0.
double equivalence_power(double margin, double error, double degrees, double alpha);

// Holm's step-down correction for claims with two hypotheses.
//
// A claim is about a true difference d. Its tests use one t statistic at a common level c:
//   "lower" (null d >= 0) and "higher" (null d <= 0), each at c / 2, as a two-sided test at c does;
//   "within the margin" (null |d| > margin), by two one-sided tests at c each.
// For one claim and any d, a wrong verdict of any kind has probability at most c:
//   d = 0: "lower" or "higher", c / 2 each.
//   0 < d <= margin: "lower", c / 2.
//   d > margin: "lower" or "within". Both need the upper end of the one-sided interval of 1 - c
//   below the margin, which has probability c.
// The mirrored cases are alike. For a claim of equivalence ("within", or "beyond" with the null
// |d| <= margin) and for one of "not above the margin" the two nulls are complements: one of them
// is true, and its test is wrong with probability c at most.
//
// Bonferroni's inequality then gives c = alpha / m for m claims. Shaffer (1986) sharpens Holm
// (1979) by logical constraints: a step down counts the nulls that can still be true. After
// correct verdicts "lower" and "within" only "higher" can be wrong, with probability c / 2: such a
// claim counts half. So does "lower" if there is no margin. After "lower" alone, d may lie beyond
// the margin, and "within" is still wrong with probability c: one of two verdicts gives no credit.
// Complementary nulls are never both rejected: they give no credit. With c = alpha / (sum of
// counts), which only falls as verdicts are added, the sequential rejection principle (Goeman and
// Solari 2010) bounds the probability of any wrong verdict by alpha, for any dependence between
// claims. Holm's correction of each hypothesis separately credits a claim as soon as one of its
// nulls is rejected, which allows up to 2 alpha;
// tests/train/study/compare/claims/simulation_test.cpp simulates such studies.

/// The p values of the two hypotheses of one claim. NaN: not testable yet, counted as a test that
/// failed.
struct TwoHypotheses {
  double own = kNaN;            ///< two-sided if it concerns a difference from 0
  std::optional<double> other;  ///< nothing: the claim has no second hypothesis
  bool complementary = false;   ///< exactly one of the two nulls is true
};

/// Corrected p values, and the factors by which the p values were multiplied.
struct TwoCorrected {
  double own = kNaN, other = kNaN;
  double own_factor = kNaN, other_factor = kNaN;
};

/// Returns adjusted p values in the given order. If all hypotheses with an adjusted p <= alpha are
/// decided, the probability of any wrong verdict is at most alpha. NaN stays NaN.
std::vector<TwoCorrected> joint_holm(std::span<const TwoHypotheses> claims);

}  // namespace difftape::stats
