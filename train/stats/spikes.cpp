#include "train/stats/spikes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace difftape::stats {

namespace {

constexpr double kSmallestStd = 1e-10;
constexpr double kMemory = 0.97;        // ZClip's alpha
constexpr double kBesideTheStd = 1e-6;  // ZClip's eps

/// The rule's own numbers; `window` is the one that is used.
SpikeRule own_numbers(SpikeDefinition definition, Index window) {
  switch (definition) {
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

struct Moments {
  double n, mean, squares;  // sum of the squared deviations
};

using Iterator = std::deque<double>::const_iterator;

/// Of the values and `one_more`. Two passes each time: exact to rounding, where running sums would
/// cancel.
Moments moments_of(Iterator begin, Iterator end, std::optional<double> one_more = {}) {
  const double n = static_cast<double>(end - begin + (one_more ? 1 : 0));
  double sum = one_more.value_or(0);
  for (Iterator x = begin; x != end; ++x) sum += *x;
  const double mean = sum / n;
  double squares = one_more ? (*one_more - mean) * (*one_more - mean) : 0;
  for (Iterator x = begin; x != end; ++x) squares += (*x - mean) * (*x - mean);
  return {n, mean, squares};
}

}  // namespace

SpikeDefinition definition_for(SpikeDefinition definition, Index steps) {
  if (definition != SpikeDefinition::automatic) return definition;
  return steps < kLongRun ? SpikeDefinition::olmo_core : SpikeDefinition::olmo2;
}

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
                                  "zclip forgets by a moving average and has no window, but "
                                  "log.spike_window is {}; leave it at 0",
                                  rule.window);
  }
  if (rule.min_history > rule.window) {
    return fmt::format(
        "spikes need {} values before the first verdict, but the window holds {}; lower "
        "log.spike_min_history or raise log.spike_window",
        rule.min_history, rule.window);
  }
  // A value cannot be further than this from the mean of a window that holds it.
  const double furthest = std::sqrt(static_cast<double>(std::max<Index>(rule.window, 1) - 1));
  if (rule.definition == SpikeDefinition::llmc && !(rule.threshold < furthest)) {
    return fmt::format(
        "in llmc the window holds the value it judges, so that none is {} standard deviations away "
        "from the mean of {}; lower log.spike_threshold below {:.3g} or raise log.spike_window",
        rule.threshold, rule.window, furthest);
  }
  return "";
}

SpikeDetector::SpikeDetector(const SpikeRule& rule) : rule_(rule) {
  const bool windowed = rule.definition != SpikeDefinition::zclip;
  const bool holds = rule.window >= 1 && rule.min_history <= rule.window;
  if ((windowed && !holds) || !(rule.threshold > 0)) {
    throw ConfigError(fmt::format(
        "log: no value could ever be judged a spike: spike_window {}, spike_min_history {}, "
        "spike_threshold {}; need 1 <= spike_window, spike_min_history <= spike_window and "
        "spike_threshold > 0",
        rule.window, rule.min_history, rule.threshold));
  }
  if (const std::string why_invalid = unsupported_reason(rule); !why_invalid.empty()) {
    throw ConfigError("log: " + why_invalid);
  }
}

SpikeVerdict SpikeDetector::judge(double value) const {
  SpikeVerdict verdict =
      rule_.definition == SpikeDefinition::zclip ? judge_by_moving(value) : judge_by_window(value);
  if (!std::isfinite(value)) verdict.spike = true;
  return verdict;
}

SpikeVerdict SpikeDetector::judge_by_window(double value) const {
  if (window_.empty() || std::ssize(window_) < rule_.min_history) return {};
  const bool with_it = rule_.definition == SpikeDefinition::llmc && std::isfinite(value);
  const bool full = std::ssize(window_) == rule_.window;  // then the oldest makes room for it
  const auto first = window_.begin() + (with_it && full ? 1 : 0);
  const Moments moments =
      moments_of(first, window_.end(), with_it ? std::optional(value) : std::nullopt);
  const bool sample = rule_.definition == SpikeDefinition::olmo_core;
  const double std = std::sqrt(moments.squares / (sample ? moments.n - 1 : moments.n));
  const double deviation = value - moments.mean;
  const double limit = rule_.threshold * std;
  const bool far =
      rule_.definition == SpikeDefinition::olmo2 ? std::abs(deviation) >= limit : deviation > limit;
  return {std >= kSmallestStd && far, moments.mean, std};
}

SpikeVerdict SpikeDetector::judge_by_moving(double value) const {
  if (!moving_) return {};
  const double std = std::sqrt(moving_->variance);
  const double z = (value - moving_->mean) / (std + kBesideTheStd);
  SpikeVerdict verdict{z > rule_.threshold, moving_->mean, std};
  if (verdict.spike) {
    verdict.clipped = moving_->mean + rule_.threshold * std / (z / rule_.threshold);
  }
  return verdict;
}

/// The update of ZClip after a step: of a spike the clipped value enters the mean.
void SpikeDetector::move(double value, const SpikeVerdict& verdict) {
  if (!moving_) {
    window_.push_back(value);
    if (std::ssize(window_) < rule_.min_history) return;
    const Moments moments = moments_of(window_.begin(), window_.end());
    moving_ = {moments.mean, moments.squares / moments.n};
    window_.clear();
    return;
  }
  if (verdict.spike) value = verdict.clipped;
  moving_->mean = kMemory * moving_->mean + (1 - kMemory) * value;
  const double deviation = value - moving_->mean;
  moving_->variance = kMemory * moving_->variance + (1 - kMemory) * deviation * deviation;
}

bool SpikeDetector::add(double value) {
  const SpikeVerdict verdict = judge(value);
  count_ += 1;
  spikes_ += verdict.spike ? 1 : 0;
  if (!std::isfinite(value)) return true;
  if (rule_.definition == SpikeDefinition::zclip) {
    move(value, verdict);
    return verdict.spike;
  }
  window_.push_back(value);
  if (std::ssize(window_) > rule_.window) window_.pop_front();
  return verdict.spike;
}

double SpikeDetector::score() const {
  return count_ == 0 ? 0 : 100.0 * static_cast<double>(spikes_) / static_cast<double>(count_);
}

void SpikeDetector::restore(std::span<const double> history, Index count, Index spikes,
                            const std::optional<Moving>& moving) {
  const bool windowed = rule_.definition != SpikeDefinition::zclip;
  const std::size_t kept =
      windowed ? std::min(history.size(), static_cast<std::size_t>(rule_.window)) : history.size();
  window_.assign(history.end() - static_cast<std::ptrdiff_t>(kept), history.end());
  count_ = count;
  spikes_ = spikes;
  moving_ = moving;
}

}  // namespace difftape::stats
