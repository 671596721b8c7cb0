#include "train/stats/spikes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "train/stats/descriptive.h"

namespace difftape::stats {
namespace {

constexpr double kSmallestSpread = 1e-10;
constexpr double kLossDeviations = 8, kGradNormMedians = 5;
constexpr double kMemory = 0.97;        // ZClip's alpha
constexpr double kBesideTheStd = 1e-6;  // ZClip's eps

/// Returns the definition's default parameters for `window`.
SpikeRule own_numbers(SpikeDefinition definition, Index window) {
  switch (definition) {
    case SpikeDefinition::median:
      return {128, 0, std::max<Index>(1, window / 2), definition};
    case SpikeDefinition::olmo_core:
      return {128, 6, std::max<Index>(20, window / 2) - 1, definition};
    case SpikeDefinition::llmc:
      return {128, 7, window, definition};
    case SpikeDefinition::zclip:
      return {0, 2.5, 25, definition};
    default:
      return {1000, 7, 50, SpikeDefinition::olmo2};
  }
}

/// Mean, and sum of the squared deviations from it.
struct Moments {
  double n, mean, squares;
};

/// Returns the moments of the values from index `first` on and of `one_more`; at least one value is
/// needed. Two passes avoid the cancellation of running sums.
Moments moments_of(const std::deque<double>& values, Index first = 0,
                   std::optional<double> one_more = {}) {
  const auto begin = values.begin() + first, end = values.end();
  const double n = static_cast<double>(end - begin + (one_more ? 1 : 0));
  const double mean = std::accumulate(begin, end, one_more.value_or(0)) / n;
  double squares = one_more ? (*one_more - mean) * (*one_more - mean) : 0;
  for (auto x = begin; x != end; ++x) squares += (*x - mean) * (*x - mean);
  return {n, mean, squares};
}

}  // namespace

SpikeRule make_spike_rule(SpikeDefinition definition, Index window, double threshold,
                          Index min_history) {
  const Index used = window > 0 ? window : own_numbers(definition, 0).window;
  const SpikeRule own = own_numbers(definition, used);
  return {used, threshold > 0 ? threshold : own.threshold,
          min_history > 0 ? min_history : own.min_history, definition};
}

std::string unsupported_reason(const SpikeRule& rule) {
  if (rule.definition == SpikeDefinition::zclip) {
    return rule.window == 0 ? ""
                            : fmt::format(
                                  "zclip uses a moving average and has no window, but "
                                  "log.spike_window is {}; leave it at 0",
                                  rule.window);
  }
  if (rule.min_history > rule.window) {
    return fmt::format(
        "spikes need {} values before the first verdict, but the window holds {}; lower "
        "log.spike_min_history or raise log.spike_window",
        rule.min_history, rule.window);
  }
  if (rule.definition == SpikeDefinition::median && rule.threshold != 0) {
    return fmt::format(
        "median has two fixed thresholds, {} medians of the gradient norm and {} median absolute "
        "deviations of the loss, but log.spike_threshold is {}; leave it at 0",
        kGradNormMedians, kLossDeviations, rule.threshold);
  }
  // Maximum distance, in standard deviations, of a value from the mean of a window with it.
  const double furthest = std::sqrt(static_cast<double>(std::max<Index>(rule.window, 1) - 1));
  if (rule.definition == SpikeDefinition::llmc && !(rule.threshold < furthest)) {
    return fmt::format(
        "in llmc the window contains the judged value, so none can be {} standard deviations from "
        "the mean of {}; lower log.spike_threshold below {:.3g} or raise log.spike_window",
        rule.threshold, rule.window, furthest);
  }
  return "";
}

SpikeDetector::SpikeDetector(const SpikeRule& rule, SpikeSeries series)
    : rule_(rule), series_(series) {
  const bool windowed = rule.definition != SpikeDefinition::zclip;
  const bool holds = rule.window >= 1 && rule.min_history <= rule.window;
  const bool has_threshold = rule.definition == SpikeDefinition::median || rule.threshold > 0;
  throw_if<ConfigError>(
      (windowed && !holds) || !has_threshold,
      "log: no value could ever be a spike with spike_window {}, spike_min_history {} and "
      "spike_threshold {}; need 1 <= spike_window, spike_min_history <= spike_window and "
      "spike_threshold > 0",
      rule.window, rule.min_history, rule.threshold);
  if (const std::string why_invalid = unsupported_reason(rule); !why_invalid.empty())
    throw ConfigError("log: " + why_invalid);
}

SpikeVerdict SpikeDetector::judge(double value) const {
  SpikeVerdict verdict = rule_.definition == SpikeDefinition::median  ? judge_by_median(value)
                         : rule_.definition == SpikeDefinition::zclip ? judge_by_moving(value)
                                                                      : judge_by_window(value);
  if (!std::isfinite(value)) verdict.spike = true;
  return verdict;
}

double SpikeDetector::threshold() const {
  if (rule_.definition != SpikeDefinition::median) return rule_.threshold;
  return series_ == SpikeSeries::loss ? kLossDeviations : kGradNormMedians - 1;
}

SpikeVerdict SpikeDetector::judge_by_median(double value) const {
  if (sorted_.empty() || std::ssize(sorted_) < rule_.min_history) return {};
  const double median = median_of_sorted(sorted_);
  const double spread = series_ == SpikeSeries::loss ? median_deviation_of_sorted(sorted_) : median;
  return {spread >= kSmallestSpread && value - median > threshold() * spread, median, spread};
}

SpikeVerdict SpikeDetector::judge_by_window(double value) const {
  if (window_.empty() || std::ssize(window_) < rule_.min_history) return {};
  const bool with_it = rule_.definition == SpikeDefinition::llmc && std::isfinite(value);
  const bool full = std::ssize(window_) == rule_.window;  // then the oldest value leaves
  const Moments moments =
      moments_of(window_, with_it && full ? 1 : 0, with_it ? std::optional(value) : std::nullopt);
  const bool sample = rule_.definition == SpikeDefinition::olmo_core;
  const double std = std::sqrt(moments.squares / (sample ? moments.n - 1 : moments.n));
  const double deviation = value - moments.mean;
  const double limit = rule_.threshold * std;
  const bool far =
      rule_.definition == SpikeDefinition::olmo2 ? std::abs(deviation) >= limit : deviation > limit;
  return {std >= kSmallestSpread && far, moments.mean, std};
}

SpikeVerdict SpikeDetector::judge_by_moving(double value) const {
  if (!moving_) return {};
  const double std = std::sqrt(moving_->variance);
  const double z = (value - moving_->mean) / (std + kBesideTheStd);
  SpikeVerdict verdict{z > rule_.threshold, moving_->mean, std};
  if (verdict.spike)
    verdict.clipped = moving_->mean + rule_.threshold * std / (z / rule_.threshold);
  return verdict;
}

/// Updates the moving mean and variance of ZClip; a spike enters with its clipped value.
void SpikeDetector::move(double value, const SpikeVerdict& verdict) {
  if (!moving_) {
    window_.push_back(value);
    if (std::ssize(window_) < rule_.min_history) return;
    const Moments moments = moments_of(window_);
    moving_ = {moments.mean, moments.squares / moments.n};
    window_ = {};
    return;
  }
  if (verdict.spike) value = verdict.clipped;
  moving_->mean = kMemory * moving_->mean + (1 - kMemory) * value;
  const double deviation = value - moving_->mean;
  moving_->variance = kMemory * moving_->variance + (1 - kMemory) * deviation * deviation;
}

SpikeVerdict SpikeDetector::take(double value) {
  const SpikeVerdict verdict = judge(value);
  count_ += 1;
  spikes_ += verdict.spike ? 1 : 0;
  if (!std::isfinite(value)) return verdict;
  if (rule_.definition == SpikeDefinition::zclip)
    move(value, verdict);
  else
    remember(value);
  return verdict;
}

void SpikeDetector::remember(double value) {
  const bool sorts = rule_.definition == SpikeDefinition::median;
  window_.push_back(value);
  if (sorts) sorted_.insert(std::ranges::upper_bound(sorted_, value), value);
  if (std::ssize(window_) <= rule_.window) return;
  if (sorts) sorted_.erase(std::ranges::lower_bound(sorted_, window_.front()));
  window_.pop_front();
}

double SpikeDetector::score() const {
  return count_ == 0 ? 0 : 100.0 * static_cast<double>(spikes_) / static_cast<double>(count_);
}

void SpikeDetector::restore(std::span<const double> history, Index count, Index spikes,
                            const std::optional<Moving>& moving) {
  const bool windowed = rule_.definition != SpikeDefinition::zclip;
  const std::size_t kept =
      windowed ? std::min(history.size(), static_cast<std::size_t>(rule_.window)) : history.size();
  window_.assign(history.end() - kept, history.end());
  sorted_.clear();
  if (rule_.definition == SpikeDefinition::median) {
    sorted_.assign(window_.begin(), window_.end());
    std::ranges::sort(sorted_);
  }
  count_ = count;
  spikes_ = spikes;
  moving_ = moving;
}

}  // namespace difftape::stats
