#pragma once
// Spikes of a logged series: values far above the values before them.
//
// Let x be the judged value and W the finite values among the last 128 before it. x is a spike if
//   grad_norm   x > 5 median(W)
//   loss        x - median(W) > 8 MAD(W),   MAD(W) = median of |w - median(W)| over w in W
// NaN and infinity are spikes from the first value on, and do not enter W. There is no verdict
// before W holds 64 values, or while median(W), for losses MAD(W), is below 1e-10: on a constant
// series the rule would judge rounding errors.
//
// Spikes move a median only if they fill half of W, so the count does not saturate. Rules by mean
// and standard deviation, such as the spike score of OLMo 2, saturate because a spike widens the
// deviation for later ones.

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "core/real.h"

namespace difftape::stats {

/// Quantity of a series.
enum class SpikeSeries { loss, grad_norm };

/// Judges a series one value at a time.
class SpikeDetector {
 public:
  static constexpr Index kWindow = 128, kMinHistory = 64;

  explicit SpikeDetector(SpikeSeries series) : series_(series) {}

  /// Adds the next value; returns true if it is a spike.
  bool add(double value);

 private:
  bool is_far(double value) const;

  SpikeSeries series_;
  std::deque<double> window_;   ///< finite values, oldest first
  std::vector<double> sorted_;  ///< the same values, ascending
};

/// Returns the indices of the spikes of a series.
std::vector<std::size_t> spikes_of(std::span<const double> values, SpikeSeries series);

/// Returns the spike score of OLMo 2 (arXiv 2501.00656, section 3.2): the percentage of values that
/// are at least 7 standard deviations from the mean of the last 1000 finite values before them.
/// Values that are not finite count; others do not before 50 finite values, or while the deviation
/// is below 1e-10. NaN for an empty series.
double spike_score(std::span<const double> values);

}  // namespace difftape::stats
