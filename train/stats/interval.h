#pragma once
// Repeated measurements: their mean, how far to trust it, whether two variants differ that were run
// with the same seeds, and corrections for many tests.

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

/// The quantile of Student's t distribution with `degrees` >= 1 degrees of freedom at
/// `probability`, in (0, 1).
double student_t_quantile(double probability, Index degrees);
/// The two-sided p value: the probability that such a variable is at least as far from 0 as `t`.
/// 0 for an infinite t, NaN for NaN.
double student_t_two_sided(double t, Index degrees);

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

/// Differences a[i] - b[i] of values that belong together.
struct PairedDifference {
  Interval difference;  ///< mean with its 95 % t-interval
  double p = kNaN;      ///< two-sided, that the true mean is 0
  Index pairs = 0;
  double error = kNaN;  ///< standard error of the mean
};

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
/// is false, on average over independent tests. In the order given; a NaN is no test and stays NaN.
std::vector<double> benjamini_hochberg(std::span<const double> p);

}  // namespace difftape::stats
