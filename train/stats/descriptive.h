#pragma once
// Descriptive statistics: quantile, spread, slope, growth.

#include <span>
#include <vector>

namespace difftape::stats {

/// Returns the q-quantile, q in [0, 1], with linear interpolation between order statistics (numpy's
/// default); NaN if `values` is empty. Values may be infinite, but not NaN.
double quantile(std::vector<double> values, double q);

/// Return the median of ascending values, and their median absolute deviation (MAD) in logarithmic
/// time. `values` must not be empty.
double median_of_sorted(std::span<const double> values);
double median_deviation_of_sorted(std::span<const double> values);

/// Return the mean, the sum of squared deviations from the mean, and the population variance; mean
/// and variance are NaN if `values` is empty.
double mean(std::span<const double> values);
double squared_deviations(std::span<const double> values);
double variance(std::span<const double> values);

/// Returns the population standard deviation divided by the median. NaN with fewer than two values
/// or a median <= 0.
double variation(std::span<const double> values);

/// Return the slope of the least-squares line through points (x, y), and Pearson's correlation. x
/// and y have equal lengths. NaN with fewer than two points or if all x are equal; the correlation
/// also if all y are.
double slope(std::span<const double> x, std::span<const double> y);
double correlation(std::span<const double> x, std::span<const double> y);

/// Returns the least-squares slope of log(y) over log(x), the exponent a of y ~ x^a. Skips points
/// unless both x and y are positive and finite; NaN with fewer than two different x.
double growth_exponent(std::span<const double> x, std::span<const double> y);

/// Values and their steps, which ascend; both vectors have the same length.
struct Series {
  std::vector<double> step, value;
};

/// Returns the points with finite values.
Series finite(const Series& series);

}  // namespace difftape::stats
