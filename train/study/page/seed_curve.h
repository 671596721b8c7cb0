#pragma once
// The curve of a metric over replicates: runs that differ in their seed alone.

#include <string>
#include <vector>

#include "train/study/compare/study.h"

namespace difftape::study::page {

/// At each step, over the runs that have a finite value there (a run that diverged has none any
/// more): their mean, the smallest and the largest value.
struct SeedCurve {
  std::vector<double> step, mean, low, high;  ///< same length
  bool banded = false;                        ///< more than one run
};
SeedCurve seed_curve(const Cell& cell, const std::string& metric);

/// At most about `points` points: the first, the last, and of each of equal stretches those with
/// the lowest and highest value of mean and band, so that no peak is lost.
SeedCurve decimate(const SeedCurve& curve, std::size_t points);

/// Spikes of each run by the rule in its config, at the value that was measured, by step.
Curve seed_spikes(const Cell& cell, const std::string& metric);

/// Steps at which runs diverged.
std::vector<double> divergences(const Cell& cell);

}  // namespace difftape::study::page
