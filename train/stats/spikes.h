#pragma once
// Which values of a running series are spikes, judged one value at a time: by a running median, or
// as others define it. What is done about a spike, optim.on_spike says.
//
// mean, std and median are those of the window; x is the value; threshold, window and min_history
// as in SpikeRule. In every rule
//   - NaN and infinity are a spike, from the first value on, and stay out of the window
//   - a spike enters later windows (zclip: its clipped value does)
//   - there is no verdict before the window holds min_history values
//   - nor, but for zclip, while the spread (std, MAD, the median of gradient norms) is below 1e-10:
//     on a constant series the literal rules would judge rounding errors
//
//   median     x > 5 median               of gradient norms, of the last 128 values before x
//              x - median > 8 MAD         of losses; MAD = median of |w - median| over the same
//              min_history max(1, W/2)    values w. difftape's own: spikes move a median only if
//                                         they fill half of the window, so their number does not
//                                         saturate, as that of rules by mean and std does
//                                         (tests/train/stats/spike_rules_test.cpp)
//   olmo2      |x - mean| >= 7 std            population std of the last 1000 values before x;
//              min_history 50                 OLMo 2 (arXiv 2501.00656), section 3.2; the details
//                                             that it leaves open are fixed here
//   olmo_core  x - mean > 6 std               sample std of the last 128 values before x;
//              min_history max(20, W/2) - 1   allenai/OLMo-core, SkipStepOptimizer. There a step is
//                                             skipped for loss or gradient norm; here each is
//                                             judged by itself. Its first revisions took the
//                                             distance |x - mean|.
//   llmc       x - mean > 7 std               population std of the last 128 values with x itself;
//              min_history W, before x        karpathy/llm.c, llmc/outlier_detector.h. Its user
//                                             sets the threshold (-sl, -sg), 7 is olmo2's. Its pull
//                                             request 711 has a window of 64, which outliers stay
//                                             out of
//   zclip      z = (x - mean) / (std + 1e-6)  mean and variance start as those (population) of the
//              z > 2.5                        first 25 values, then move by 0.97, as below;
//              min_history 25                 ZClip (arXiv 2504.02507), bluorion-com/ZClip: z-score
//                                             mode with adaptive scaling, without its fixed maximum
//              v     = x, or if x is a spike mean + threshold^2 std / z: what ZClip clips it to
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
/// What a series holds: median judges the two by different limits, the others do not.
enum class SpikeSeries { loss, grad_norm };

constexpr auto names_of(SpikeDefinition) {
  using enum SpikeDefinition;
  return std::to_array<Named<SpikeDefinition>>({{"median", median},
                                                {"olmo2", olmo2},
                                                {"olmo_core", olmo_core},
                                                {"llmc", llmc},
                                                {"zclip", zclip}});
}

/// A definition with its numbers; the defaults are those of olmo2.
struct SpikeRule {
  Index window = 1000;     ///< values before this one that are used; zclip has none
  double threshold = 7;    ///< standard deviations from their mean; 0: median, which has its own
  Index min_history = 50;  ///< values the window must hold before there is a verdict
  SpikeDefinition definition = SpikeDefinition::olmo2;
  bool operator==(const SpikeRule&) const = default;
};

/// A rule of the definition; a number that is 0 becomes the definition's own. Numbers are not
/// checked.
SpikeRule make_spike_rule(SpikeDefinition definition, Index window = 0, double threshold = 0,
                          Index min_history = 0);
/// Why the rule could never judge a value a spike, and what to change, in terms of the keys
/// log.spike_*; empty if it could.
std::string unsupported_reason(const SpikeRule& rule);

/// The result of a rule for one value. Of the window: its mean and standard deviation, by median
/// its median and MAD (of gradient norms its median again, since the limit is a multiple of it).
/// NaN where there is no window yet.
struct SpikeVerdict {
  bool spike = false;
  double center = std::numeric_limits<double>::quiet_NaN();
  double spread = std::numeric_limits<double>::quiet_NaN();
  double clipped = std::numeric_limits<double>::quiet_NaN();  ///< zclip: what it clips a spike to
};

class SpikeDetector {
 public:
  /// Throws ConfigError for a rule that could never judge a value.
  explicit SpikeDetector(const SpikeRule& rule = {}, SpikeSeries series = SpikeSeries::loss);

  /// What add(value) would return, with its center and spread.
  SpikeVerdict judge(double value) const;
  /// Adds the next value; true if it is a spike.
  bool add(double value) { return take(value).spike; }
  /// The same, with what judge(value) says.
  SpikeVerdict take(double value);

  /// Percentage of the values so far that were spikes, 0 to 100; 0 before the first value.
  double score() const;
  Index count() const { return count_; }    ///< values seen
  Index spikes() const { return spikes_; }  ///< how many of them are spikes
  const SpikeRule& rule() const { return rule_; }
  /// Spreads from the center from which on a value is a spike.
  double threshold() const;

  /// The moving mean and variance of zclip.
  struct Moving {
    double mean, variance;
    bool operator==(const Moving&) const = default;
  };
  /// The window, oldest value first; of zclip the first values, until there are enough for
  /// moving(). With moving(), count() and spikes() it is the whole state.
  std::vector<double> history() const { return {window_.begin(), window_.end()}; }
  const std::optional<Moving>& moving() const { return moving_; }
  /// Continues where the detector that exported these values stopped.
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
  std::vector<double> sorted_;  ///< the window's values, ascending; of median alone
  std::optional<Moving> moving_;
  Index count_ = 0;
  Index spikes_ = 0;
};

}  // namespace difftape::stats
