#pragma once
// Repeated measurements: their mean, how far to trust it, whether two variants differ that were run
// with the same seeds, and corrections for many tests.

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

/// The quantile of Student's t distribution with `degrees` > 0 degrees of freedom, which need not
/// be an integer, at `probability`, in (0, 1).
double student_t_quantile(double probability, double degrees);
/// The two-sided p value: the probability that such a variable is at least as far from 0 as `t`.
/// 0 for an infinite t, NaN for NaN.
double student_t_two_sided(double t, double degrees);

/// mean +- t s / sqrt(n), with s the sample's standard deviation and t the 97.5 % quantile for
/// n - 1 degrees of freedom: for independent values of about normal distribution. One value has no
/// half_width (NaN), none has no mean; infinities and NaNs propagate.
Interval mean_interval(std::span<const double> values);

/// A positive quantity measured many times: its geometric mean and the 95 % t-interval of its
/// logarithm. The ratio of geometric means is the geometric mean of ratios, and no interval reaches
/// below 0.
struct Ratio {
  double value, low, high;
};
Ratio geometric_mean(std::span<const double> logs);

/// A mean of differences a[i] - b[i] of values that belong together, or another estimate that is
/// linear in them.
struct PairedDifference {
  Interval difference;  ///< estimate with its 95 % t-interval
  double p = kNaN;      ///< two-sided, that the true value is 0
  Index pairs = 0;
  double error = kNaN;    ///< standard error of the estimate
  double degrees = kNaN;  ///< degrees of freedom of the error; pairs - 1 of a mean
};

/// An estimate that is normally distributed, with its interval and its p value.
PairedDifference t_estimate(double estimate, double error, double degrees, Index pairs);

/// The squared standard error of one part of an estimate, and its degrees of freedom.
struct ErrorPart {
  double variance, degrees;
};
/// The sum of independent parts, with the degrees of freedom of Welch (1947) and Satterthwaite
/// (1946): (sum v)^2 / sum (v^2 / degrees). Parts of variance 0 have no influence.
ErrorPart sum_of_errors(std::span<const ErrorPart> parts);

/// The error of the mean of at least two independent values.
ErrorPart mean_error(std::span<const double> values);

/// The estimate with an independent error added to its own, as that of held-out text to that of
/// seeds. As it was if its error is not known, or 0 because its differences are all equal.
PairedDifference with_error(const PairedDifference& estimate, const ErrorPart& more);

/// Adds the sampling error of held-out text to an estimate: `groups` holds the estimate in each
/// group of documents, NaN where nothing was scored. Returns it as it was for fewer than two
/// groups, or if it has no error of its own.
PairedDifference with_error_over_groups(const PairedDifference& estimate,
                                        std::vector<double> groups);

/// Student's paired t-test of two lists of equal length. One pair has a difference, but neither
/// interval nor p (NaN). Where all n differences are the same number, to 1e-9 of the largest value,
/// there is no spread to judge by: p is then 1 if they are 0, and otherwise that of the sign test,
/// 2^(1-n). NaN propagates.
PairedDifference paired_difference(std::span<const double> a, std::span<const double> b);

/// Holm's step-down correction (1979): adjusted p values for as many tests as there are numbers, so
/// that calling those below 0.05 significant is wrong once in 20 families at most. In the order
/// given; ties get the same value; a NaN is not counted as a test and stays NaN.
std::vector<double> holm(std::span<const double> p);

/// Benjamini and Hochberg (1995): adjusted p values such that among those below q at most a share q
/// is false, on average over independent tests. In the order given; a NaN is not a test and stays
/// NaN.
std::vector<double> benjamini_hochberg(std::span<const double> p);

/// The differences at one size, one for each seed.
struct SizeGaps {
  double size;  ///< above 0
  std::vector<std::uint64_t> seeds;
  std::vector<double> gaps;
};

enum class Trend { mean, slope };

/// The weight of each gap at each size in the estimate, which is their sum of products. At least
/// one size with gaps at each; for the slope two different sizes.
std::vector<double> gap_weights(std::span<const SizeGaps> sizes, Trend trend);

/// The estimate with its interval over seeds; a slope is per factor of ten in size. NaN in place of
/// the error with fewer than two seeds at a size, and where the seeds show no spread. A class of
/// one seed takes the variances of its sizes, as if these were independent.
PairedDifference size_trend(std::span<const SizeGaps> sizes, Trend trend);

}  // namespace difftape::stats
