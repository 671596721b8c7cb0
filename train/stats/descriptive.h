#pragma once
// Numbers that describe values: quantile, spread, slope; and what a quantity does late in training:
// whether the gradient norm grows or varies, as the V2 article says of V1.

#include <span>
#include <vector>

namespace difftape::stats {

/// The q-quantile, q in [0, 1], with linear interpolation between order statistics (numpy's
/// default); NaN if `values` is empty. Infinities are ordered as numbers; NaN must not be among
/// the values.
double quantile(std::vector<double> values, double q);

/// The median of ascending values, and the median of their distances from it (MAD), in time that
/// grows with their number. There must be one.
double median_of_sorted(std::span<const double> values);
double median_deviation_of_sorted(std::span<const double> values);

/// Population mean and variance, NaN if `values` is empty; sum of the squared deviations from the
/// mean.
double mean(std::span<const double> values);
double squared_deviations(std::span<const double> values);
double variance(std::span<const double> values);

/// Standard deviation (population) over median. NaN with fewer than two values and for a median
/// that is not positive.
double variation(std::span<const double> values);

/// Of points (x, y), as many of each: the slope of the least-squares line, and Pearson's
/// correlation. NaN if there are no two, or all are equal in x (the correlation: in x or in y).
double slope(std::span<const double> x, std::span<const double> y);
double correlation(std::span<const double> x, std::span<const double> y);

/// Least-squares slope of log(y) over log(x), the exponent a of y ~ x^a. Points where x or y is not
/// positive and finite are left out; NaN with fewer than two different x.
double growth_exponent(std::span<const double> x, std::span<const double> y);

/// Values with the steps they belong to, ascending; both of the same length.
struct Series {
  std::vector<double> step, value;
};

/// Values of the steps 1, 2, ...
Series numbered(std::span<const double> values);
/// The points whose value is neither NaN nor infinite.
Series finite(const Series& series);

inline constexpr double kSecondHalf = 0.5, kLastQuarter = 0.25;
/// The window of everything said to be late: the points in the last `share` of the steps, those
/// after (1 - share) of the last step. Of the steps 1 to n, kLastQuarter takes n / 4 rounded up.
Series late(const Series& series, double share);

/// Growth exponent over the second half of the steps: the slope of the least-squares line of
/// log(value) against log(step); a value that grows like step^a has exponent a. Values that are not
/// positive and finite are left out; NaN with fewer than two.
double late_growth(const Series& series);
/// Population variance of what is finite in the last quarter of the steps; NaN of nothing.
double late_variance(const Series& series);

}  // namespace difftape::stats
