#pragma once
// Which values of a running series are spikes, judged one value at a time.

#include <deque>
#include <span>
#include <vector>

#include "core/real.h"

namespace difftape {

/// The spike score of OLMo 2 (section 3.2); the details the paper leaves open are fixed here.
struct SpikeRule {
  Index window = 1000;     ///< values a verdict looks back at
  double threshold = 7;    ///< population standard deviations from their mean
  Index min_history = 50;  ///< values the window must hold before there is a verdict
};

/// A value is a spike if it lies at least `threshold` population standard deviations above or below
/// the mean of the last `window` values strictly before it. Spikes enter the window. There is no
/// verdict while the window holds fewer than `min_history` values or its std is below 1e-10.
/// NaN and infinity always count as a spike, from the first value on, and stay out of the window.
/// Another definition would replace the verdict and what it remembers; the counting stays.
class SpikeDetector {
 public:
  /// Throws ConfigError for a rule that could never judge a value.
  explicit SpikeDetector(const SpikeRule& rule = {});

  /// Takes the next value and says whether it is a spike.
  bool add(double value);

  /// Percentage of the values so far that were spikes, 0 to 100; 0 before the first value.
  double score() const;
  Index count() const { return count_; }    ///< values seen
  Index spikes() const { return spikes_; }  ///< of them spikes

  /// The window, oldest value first. With count() and spikes() it is the whole state.
  std::vector<double> history() const { return {window_.begin(), window_.end()}; }
  /// Continues where the detector that exported these values stopped.
  void restore(std::span<const double> history, Index count, Index spikes);

 private:
  bool is_spike(double value) const;

  SpikeRule rule_;
  std::deque<double> window_;
  Index count_ = 0;
  Index spikes_ = 0;
};

}  // namespace difftape
