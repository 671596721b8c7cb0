#pragma once
// What decides a question about paired differences beside Student's t: equivalence, the exact test
// of signs, the power of these tests before any run, and a correction for claims that can be
// decided in more than one way.

#include <optional>
#include <span>
#include <vector>

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

// Holm's step-down correction for claims that can be decided in more than one way.
//
// A claim is about a true difference d. Its tests use one t statistic at a common level c:
//   "lower" (null d >= 0) and "higher" (null d <= 0), each at c / 2, as a two-sided test at c does;
//   "within the margin" (null |d| > margin), by two one-sided tests at c each.
// On one claim, wrong verdicts of all kinds have probability c at most, whatever d is:
//   d = 0: "lower" or "higher", c / 2 each.
//   0 < d <= margin: "lower", c / 2.
//   d > margin: "lower" or "within". Both need the upper end of the one-sided interval of 1 - c
//   below the margin, which has probability c.
// The mirrored cases are alike. For a claim of equivalence ("within", or "beyond" with the null
// |d| <= margin) and for one of "not above the margin" the two nulls are complements: one of them
// is true, and its test is wrong with probability c at most.
//
// Bonferroni's inequality then gives c = alpha / m for m claims. Shaffer (1986) sharpens Holm
// (1979) by logical constraints: a step down counts the nulls that can still be true. Right
// verdicts "lower" and "within" leave "higher" alone to be wrong, with c / 2: such a claim counts
// half. So does "lower" where no margin is asked. After "lower" alone d may lie beyond the margin,
// where "within" is still wrong with probability c: there is no credit for one of two.
// Complementary nulls are never both rejected: no credit at all. With c = alpha / (sum of counts),
// which only falls as verdicts are added, the sequential rejection principle (Goeman and Solari
// 2010) holds all wrong verdicts together at alpha, however the claims depend on each other. Holm's
// correction of each question for itself credits a claim as soon as one of its nulls is rejected,
// and lets through up to 2 alpha; tests/train/study/compare/claims/simulation_test.cpp has such
// studies.

/// The p values of the two questions about one claim. NaN: this one cannot be told yet, and counts
/// as a test that failed.
struct TwoQuestions {
  double own = kNaN;            ///< two-sided where it is about a difference from 0
  std::optional<double> other;  ///< nothing: the claim has no second question
  bool complementary = false;   ///< exactly one of the two nulls is true
};

/// Corrected p values, and by what the p value was multiplied at its step.
struct TwoCorrected {
  double own = kNaN, other = kNaN;
  double own_factor = kNaN, other_factor = kNaN;
};

/// Adjusted p values in the order given: to call those at or below alpha decided says something
/// wrong about any of the claims with probability alpha at most. NaN stays NaN.
std::vector<TwoCorrected> joint_holm(std::span<const TwoQuestions> claims);

}  // namespace difftape::stats
