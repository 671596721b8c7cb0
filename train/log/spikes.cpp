#include "train/log/spikes.h"

#include <cmath>
#include <numeric>

#include "core/error.h"

namespace difftape {

namespace {
constexpr double kSmallestStd = 1e-10;
}  // namespace

SpikeDetector::SpikeDetector(const SpikeRule& rule) : rule_(rule) {
  if (rule.window < 1 || rule.min_history > rule.window || !(rule.threshold > 0)) {
    throw ConfigError(fmt::format(
        "log: no value could ever be judged a spike: spike_window {}, spike_min_history {}, "
        "spike_threshold {}; need 1 <= spike_window, spike_min_history <= spike_window and "
        "spike_threshold > 0",
        rule.window, rule.min_history, rule.threshold));
  }
}

// Two passes over the window each time: exact to rounding, where running sums would cancel.
bool SpikeDetector::is_spike(double value) const {
  if (!std::isfinite(value)) return true;
  if (window_.empty() || std::ssize(window_) < rule_.min_history) return false;
  const double n = static_cast<double>(window_.size());
  const double mean = std::accumulate(window_.begin(), window_.end(), 0.0) / n;
  double squares = 0;
  for (const double x : window_) squares += (x - mean) * (x - mean);
  const double std = std::sqrt(squares / n);
  return std >= kSmallestStd && std::abs(value - mean) >= rule_.threshold * std;
}

bool SpikeDetector::add(double value) {
  const bool spike = is_spike(value);
  count_ += 1;
  spikes_ += spike ? 1 : 0;
  if (std::isfinite(value)) {
    window_.push_back(value);
    if (std::ssize(window_) > rule_.window) window_.pop_front();
  }
  return spike;
}

double SpikeDetector::score() const {
  return count_ == 0 ? 0 : 100.0 * static_cast<double>(spikes_) / static_cast<double>(count_);
}

void SpikeDetector::restore(std::span<const double> history, Index count, Index spikes) {
  const std::size_t kept = std::min(history.size(), static_cast<std::size_t>(rule_.window));
  window_.assign(history.end() - static_cast<std::ptrdiff_t>(kept), history.end());
  count_ = count;
  spikes_ = spikes;
}

}  // namespace difftape
