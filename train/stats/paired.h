#pragma once
// Whether two variants differ that were run with the same seeds, and correction for many tests.

#include <span>
#include <vector>

#include "train/stats/interval.h"

namespace difftape::stats {

/// Differences a[i] - b[i] of values that belong together.
struct PairedDifference {
  Interval difference;                                  ///< mean with its 95 % t-interval
  double p = std::numeric_limits<double>::quiet_NaN();  ///< two-sided, that the true mean is 0
  Index pairs = 0;
};

/// Student's paired t-test of two lists of equal length. One pair has a difference, but neither
/// interval nor p (NaN). Where all n differences are the same number, to 1e-9 of the largest value,
/// there is no spread to judge by: p is then 1 if they are 0, and otherwise that of the sign test,
/// 2^(1-n). NaN propagates.
PairedDifference paired_difference(std::span<const double> a, std::span<const double> b);

/// Holm's step-down correction (1979): adjusted p values for as many tests as there are numbers, so
/// that calling those below 0.05 significant is wrong once in 20 families at most. In the order
/// given; ties get the same value; A NaN is not counted as a test and stays NaN.
std::vector<double> holm(std::span<const double> p);

}  // namespace difftape::stats
