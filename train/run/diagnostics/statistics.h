#pragma once
// Summaries of many numbers. A NaN among them makes the result NaN; an infinity counts as a number.
// Sums are taken in double and in order.

#include <span>
#include <vector>

#include "core/tensor.h"

namespace difftape::run {

/// Mean, population standard deviation, smallest and largest. Of nothing: all NaN.
struct Spread {
  double mean, std, min, max;
};
Spread spread_of(std::span<const double> values);

/// The largest of many magnitudes by rank, and their median (Ye et al. 2024, table 5); NaN for a
/// rank that there are too few for. The median of an even number is the mean of the middle two.
struct TopValues {
  double top1, top2, top3, top10, top100, median;
};
/// Reorders the magnitudes, which are not negative.
TopValues top_values(std::span<real> magnitudes);
/// [top1, top2, top3, top10, top100, median], as metrics list them.
std::vector<double> list_of(const TopValues& values);

/// Root mean square of all elements.
double rms(const Tensor& x);

/// How unequal features (the last axis of x) are in size: with s_j the root mean square of feature
/// j over all rows, mean(s^4) / mean(s^2)^2. 1: all alike; at most their number: all but one 0 (He
/// et al. 2024, "Understanding and minimising outlier features").
double kurtosis(const Tensor& x);

}  // namespace difftape::run
