#include "train/stats/spikes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "train/stats/descriptive.h"

namespace difftape::stats {
namespace {

constexpr double kSmallestSpread = 1e-10;
constexpr double kLossDeviations = 8, kGradNormMedians = 5;
constexpr Index kScoreWindow = 1000, kScoreMinHistory = 50;
constexpr double kScoreDeviations = 7;

/// Returns true if a value is kScoreDeviations from the mean of these values. Two passes avoid the
/// cancellation of running sums.
bool is_outlier(double value, std::span<const double> window) {
  const double n = static_cast<double>(window.size());
  const double mean = std::accumulate(window.begin(), window.end(), 0.0) / n;
  double squares = 0;
  for (const double x : window) squares += (x - mean) * (x - mean);
  const double std = std::sqrt(squares / n);
  return std >= kSmallestSpread && std::abs(value - mean) >= kScoreDeviations * std;
}

}  // namespace

bool SpikeDetector::is_far(double value) const {
  if (!std::isfinite(value)) return true;
  if (std::ssize(sorted_) < kMinHistory) return false;
  const double median = median_of_sorted(sorted_);
  if (series_ == SpikeSeries::grad_norm)
    return median >= kSmallestSpread && value - median > (kGradNormMedians - 1) * median;
  const double deviation = median_deviation_of_sorted(sorted_);
  return deviation >= kSmallestSpread && value - median > kLossDeviations * deviation;
}

bool SpikeDetector::add(double value) {
  const bool spike = is_far(value);
  if (!std::isfinite(value)) return spike;
  window_.push_back(value);
  sorted_.insert(std::ranges::upper_bound(sorted_, value), value);
  if (std::ssize(window_) > kWindow) {
    sorted_.erase(std::ranges::lower_bound(sorted_, window_.front()));
    window_.pop_front();
  }
  return spike;
}

std::vector<std::size_t> spikes_of(std::span<const double> values, SpikeSeries series) {
  SpikeDetector detector(series);
  std::vector<std::size_t> spikes;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (detector.add(values[i])) spikes.push_back(i);
  return spikes;
}

double spike_score(std::span<const double> values) {
  std::vector<double> finite;
  double spikes = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) {
      spikes += 1;
      continue;
    }
    const std::size_t kept = std::min(finite.size(), static_cast<std::size_t>(kScoreWindow));
    const auto window = std::span<const double>(finite).last(kept);
    if (std::ssize(window) >= kScoreMinHistory && is_outlier(value, window)) spikes += 1;
    finite.push_back(value);
  }
  return 100 * spikes / static_cast<double>(values.size());
}

}  // namespace difftape::stats
