#pragma once
// Detects spikes in a running series, one value at a time, by a running median or by a published
// definition. optim.on_spike selects the reaction to a spike.
//
// mean, std and median refer to the window; x is the value; threshold, window and min_history are
// fields of SpikeRule. In every rule
//   - NaN and infinity are spikes, from the first value on, and do not enter the window
//   - other spikes enter later windows (zclip: the clipped value does)
//   - there is no verdict before the window holds min_history values
//   - except in zclip, there is no verdict while the spread (std, MAD, the median of gradient
//     norms) is below 1e-10: on a constant series the literal rules would judge rounding errors
//
//   median     x > 5 median               of gradient norms, of the last 128 values before x
//              x - median > 8 MAD         of losses; MAD = median of |w - median| over the same
//              min_history max(1, W/2)    values w. difftape's own: spikes move a median only if
//                                         they fill half of the window, so the count does not
//                                         saturate; rules by mean and std saturate
//                                         (tests/train/stats/spike_rules_test.cpp)
//   olmo2      |x - mean| >= 7 std            population std of the last 1000 values before x;
//              min_history 50                 OLMo 2 (arXiv 2501.00656), section 3.2, with the
//                                             details that it leaves open fixed here
//   olmo_core  x - mean > 6 std               sample std of the last 128 values before x;
//              min_history max(20, W/2) - 1   allenai/OLMo-core, SkipStepOptimizer. There a
//                                             spike in either skips a step; here each is judged
//                                             separately. Its first revisions used |x - mean|.
//   llmc       x - mean > 7 std               population std of the last 128 values including x;
//              min_history W, before x        karpathy/llm.c, llmc/outlier_detector.h. Its user
//                                             sets the threshold (-sl, -sg); 7 comes from olmo2.
//                                             Its pull request 711 has a window of 64 without
//                                             outliers
//   zclip      z = (x - mean) / (std + 1e-6)  mean and population variance of the first 25 values,
//              z > 2.5                        then moving averages with decay 0.97, as below;
//              min_history 25                 ZClip (arXiv 2504.02507), bluorion-com/ZClip: z-score
//                                             mode with adaptive scaling, without its fixed maximum
//              v     = x, or for a spike the clipped value mean + threshold^2 std / z
//              mean <- 0.97 mean + 0.03 v
//              var  <- 0.97 var + 0.03 (v - mean)^2, with the new mean

#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/names.h"
#include "core/real.h"

namespace difftape::stats {

enum class SpikeDefinition { median, olmo2, olmo_core, llmc, zclip };
/// Quantity of a series. Only the definition median has different limits for the two.
enum class SpikeSeries { loss, grad_norm };

constexpr auto names_of(SpikeDefinition) {
  using enum SpikeDefinition;
  return std::to_array<Named<SpikeDefinition>>({{"median", median},
                                                {"olmo2", olmo2},
                                                {"olmo_core", olmo_core},
                                                {"llmc", llmc},
                                                {"zclip", zclip}});
}

/// A definition with its parameters; the defaults are olmo2.
struct SpikeRule {
  Index window = 1000;     ///< number of earlier values used; unused by zclip
  double threshold = 7;    ///< standard deviations from the mean; 0 for median, which has its own
  Index min_history = 50;  ///< values that the window must hold before the first verdict
  SpikeDefinition definition = SpikeDefinition::olmo2;
  bool operator==(const SpikeRule&) const = default;
};

/// Returns a rule of the definition. A parameter of 0 takes the definition's default. Parameters
/// are not checked.
SpikeRule make_spike_rule(SpikeDefinition definition, Index window = 0, double threshold = 0,
                          Index min_history = 0);
/// Returns why the rule could never detect a spike and what to change, in terms of the keys
/// log.spike_*; empty if it could.
std::string unsupported_reason(const SpikeRule& rule);

/// Result of a rule for one value. center and spread are mean and standard deviation of the window.
/// For the definition median they are median and MAD; for its gradient norms both are the median,
/// since the limit is a multiple of it. They are NaN without a window.
struct SpikeVerdict {
  bool spike = false;
  double center = std::numeric_limits<double>::quiet_NaN();
  double spread = std::numeric_limits<double>::quiet_NaN();
  double clipped = std::numeric_limits<double>::quiet_NaN();  ///< zclip: the clipped value
};

class SpikeDetector {
 public:
  /// Throws ConfigError for a rule that could never detect a spike.
  explicit SpikeDetector(const SpikeRule& rule = {}, SpikeSeries series = SpikeSeries::loss);

  /// Judges a value without adding it.
  SpikeVerdict judge(double value) const;
  /// Adds the next value; returns true if it is a spike.
  bool add(double value) { return take(value).spike; }
  /// Adds the next value and returns its verdict.
  SpikeVerdict take(double value);

  /// Returns the percentage of spikes among the values so far, 0 to 100; 0 before the first value.
  double score() const;
  Index count() const { return count_; }    ///< values seen
  Index spikes() const { return spikes_; }  ///< how many of them are spikes
  const SpikeRule& rule() const { return rule_; }
  /// Returns the limit of a spike in spreads from the center.
  double threshold() const;

  /// The moving mean and variance of zclip.
  struct Moving {
    double mean, variance;
    bool operator==(const Moving&) const = default;
  };
  /// Returns the window, oldest value first; for zclip the first values, until moving() exists. The
  /// whole state is history(), moving(), count() and spikes().
  std::vector<double> history() const { return {window_.begin(), window_.end()}; }
  const std::optional<Moving>& moving() const { return moving_; }
  /// Restores the state of the detector that exported these values.
  void restore(std::span<const double> history, Index count, Index spikes,
               const std::optional<Moving>& moving = {});

 private:
  SpikeVerdict judge_by_window(double value) const;
  SpikeVerdict judge_by_median(double value) const;
  SpikeVerdict judge_by_moving(double value) const;
  void remember(double value);
  void move(double value, const SpikeVerdict& verdict);

  SpikeRule rule_;
  SpikeSeries series_;
  std::deque<double> window_;   ///< finite values, oldest first
  std::vector<double> sorted_;  ///< the window's values, ascending; median only
  std::optional<Moving> moving_;
  Index count_ = 0;
  Index spikes_ = 0;
};

}  // namespace difftape::stats
