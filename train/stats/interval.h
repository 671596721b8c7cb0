#pragma once
// Repeated measurements: their mean, and how far to trust it. The one door to Boost.Math.

#include <limits>
#include <span>

#include "core/real.h"

namespace difftape::stats {

/// A mean with its two-sided 95 % confidence interval, mean +- half_width.
struct Interval {
  double mean = std::numeric_limits<double>::quiet_NaN();
  double half_width = std::numeric_limits<double>::quiet_NaN();

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

}  // namespace difftape::stats
