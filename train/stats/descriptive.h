#pragma once
// Numbers that describe values: quantile, spread between repetitions, slope.

#include <span>
#include <vector>

namespace difftape::stats {

/// The q-quantile, q in [0, 1], with linear interpolation between order statistics (numpy's
/// default); NaN if `values` is empty. Infinities are ordered as numbers; NaN must not be among
/// the values.
double quantile(std::vector<double> values, double q);

/// Population mean and variance; NaN if `values` is empty.
double mean(std::span<const double> values);
double variance(std::span<const double> values);

/// The noise floor: the standard deviation between repetitions, pooled over groups of them,
/// sqrt(sum of squared deviations from each group's mean / sum of (size - 1)). With groups of seeds
/// of one variant, it is the typical distance of a run from the mean of its seeds: a difference
/// between variants that is smaller may be real, but another seed changes as much.
/// NaN if no group has two values; values that are not finite are left out.
double pooled_std(std::span<const std::vector<double>> groups);

/// Least-squares slope of log(y) over log(x), the exponent a of y ~ x^a. Points where x or y is not
/// positive and finite are left out; NaN with fewer than two different x.
double growth_exponent(std::span<const double> x, std::span<const double> y);

}  // namespace difftape::stats
