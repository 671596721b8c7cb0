#pragma once
// Confidence intervals of means, paired t-tests of variants that share seeds, trends over sizes,
// and corrections for multiple tests.

#include <cstdint>
#include <span>
#include <vector>

#include "core/real.h"

namespace difftape::stats {

/// A mean with its two-sided 95 % confidence interval, mean +- half_width.
struct Interval {
  double mean = kNaN;
  double half_width = kNaN;

  double low() const { return mean - half_width; }
  double high() const { return mean + half_width; }
};

/// Returns the quantile at `probability`, in (0, 1), of Student's t distribution with `degrees` > 0
/// degrees of freedom, which need not be an integer.
double student_t_quantile(double probability, double degrees);
/// Returns the two-sided p value of `t`; 0 for an infinite t, NaN for NaN.
double student_t_two_sided(double t, double degrees);

/// Returns mean +- t s / sqrt(n), with the sample standard deviation s and the 97.5 % quantile t
/// for n - 1 degrees of freedom. It assumes independent, roughly normal values. half_width is NaN
/// for one value, both are NaN for none; infinities and NaNs propagate.
Interval mean_interval(std::span<const double> values);

/// A mean of paired differences a[i] - b[i], or another estimate that is linear in them.
struct PairedDifference {
  Interval difference;  ///< estimate with its 95 % t-interval
  double p = kNaN;      ///< two-sided, for a true value of 0
  Index pairs = 0;
  double error = kNaN;    ///< standard error of the estimate
  double degrees = kNaN;  ///< degrees of freedom of the error; pairs - 1 for a mean
};

/// Returns a normally distributed estimate with its interval and its p value.
PairedDifference t_estimate(double estimate, double error, double degrees, Index pairs);

/// The squared standard error of one part of an estimate, and its degrees of freedom.
struct ErrorPart {
  double variance, degrees;
};
/// Returns the sum of independent parts, with the degrees of freedom of Welch (1947) and
/// Satterthwaite (1946): (sum v)^2 / sum (v^2 / degrees). Parts of variance 0 have no influence.
ErrorPart sum_of_errors(std::span<const ErrorPart> parts);

/// Returns Student's paired t-test of two lists of equal length. For one pair, interval and p are
/// NaN. If all n differences are equal, to 1e-9 of the largest value, they have no spread: p is 1
/// for differences of 0, and otherwise the p value of the sign test, 2^(1-n). NaN propagates.
PairedDifference paired_difference(std::span<const double> a, std::span<const double> b);

/// Differences at one size, one per seed.
struct SizeGaps {
  double size;  ///< above 0
  std::vector<std::uint64_t> seeds;
  std::vector<double> gaps;
};

enum class Trend { mean, slope };

/// Returns, for each size, the weight of its gaps in the estimate, which is the weighted sum of all
/// gaps. Needs at least one size, two different ones for the slope, and gaps at each size.
std::vector<double> gap_weights(std::span<const SizeGaps> sizes, Trend trend);

/// Returns the estimate with its interval over seeds; a slope is per factor of ten in size. The
/// error is NaN with fewer than two seeds at a size, or if the seeds have no spread. A seed that is
/// alone in its set of sizes gets the variances of these sizes, as if they were independent.
PairedDifference size_trend(std::span<const SizeGaps> sizes, Trend trend);

}  // namespace difftape::stats
