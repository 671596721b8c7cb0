#include "train/stats/spikes.h"
#include "core/real.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "core/error.h"

namespace difftape::stats {
namespace {

/// 50 values with mean 0 and population std exactly 1.
SpikeDetector warmed_up(const SpikeRule& rule = {}) {
  SpikeDetector detector(rule);
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(detector.add(i % 2 == 0 ? 1 : -1));
  return detector;
}

TEST(SpikeDetector, a_value_seven_deviations_away_is_a_spike_and_just_below_is_not) {
  EXPECT_TRUE(warmed_up().add(7.0));
  EXPECT_FALSE(warmed_up().add(std::nextafter(7.0, 0.0)));
}

TEST(SpikeDetector, both_sides_count) {
  EXPECT_TRUE(warmed_up().add(-7.0));
  EXPECT_FALSE(warmed_up().add(-6.9));
}

TEST(SpikeDetector, there_is_no_verdict_before_fifty_values) {
  SpikeDetector detector;
  for (int i = 0; i < 49; ++i) detector.add(i % 2 == 0 ? 1 : -1);
  EXPECT_FALSE(detector.add(1000));
  EXPECT_EQ(detector.count(), 50);
}

TEST(SpikeDetector, there_is_no_verdict_on_a_constant_series) {
  SpikeDetector detector;
  for (int i = 0; i < 60; ++i) detector.add(2.5);
  EXPECT_FALSE(detector.add(3.5));
}

TEST(SpikeDetector, a_spike_enters_later_windows) {
  SpikeDetector detector = warmed_up();
  EXPECT_TRUE(detector.add(100));
  EXPECT_FALSE(detector.add(50)) << "the first spike has widened the deviation";
}

TEST(SpikeDetector, values_leave_the_window) {
  SpikeDetector detector = warmed_up({.window = 50, .threshold = 7, .min_history = 50});
  EXPECT_TRUE(detector.add(100));
  for (int i = 0; i < 50; ++i) detector.add(i % 2 == 0 ? 1 : -1);
  EXPECT_TRUE(detector.add(50)) << "the first spike has left the window";
}

TEST(SpikeDetector, a_nan_counts_as_a_spike_and_stays_out_of_the_window) {
  SpikeDetector detector = warmed_up();
  const std::vector<double> before = detector.history();
  EXPECT_TRUE(detector.add(kNaN));
  EXPECT_TRUE(detector.add(-kInfinity));
  EXPECT_EQ(detector.history(), before);
  EXPECT_EQ(detector.spikes(), 2);
}

TEST(SpikeDetector, an_infinity_counts_before_there_is_any_history) {
  SpikeDetector detector;
  EXPECT_TRUE(detector.add(kInfinity));
  EXPECT_DOUBLE_EQ(detector.score(), 100);
}

TEST(SpikeDetector, the_score_is_the_percentage_of_all_values_seen) {
  SpikeDetector detector = warmed_up();
  EXPECT_DOUBLE_EQ(detector.score(), 0);
  detector.add(10);
  for (int i = 0; i < 49; ++i) detector.add(0.5);
  EXPECT_DOUBLE_EQ(detector.score(), 1);
  EXPECT_DOUBLE_EQ(SpikeDetector().score(), 0);
}

TEST(SpikeDetector, a_rule_that_could_never_judge_is_refused) {
  EXPECT_THAT(
      ([] { SpikeDetector({.window = 40, .threshold = 7, .min_history = 50}); }),
      testing::ThrowsMessage<ConfigError>(
          "log: no value could ever be judged a spike: spike_window 40, spike_min_history "
          "50, spike_threshold 7; need 1 <= spike_window, spike_min_history <= spike_window "
          "and spike_threshold > 0"));
  EXPECT_THROW(SpikeDetector({.window = 100, .threshold = 0, .min_history = 50}), ConfigError);
  EXPECT_THROW(SpikeDetector({.window = 0, .threshold = 7, .min_history = 0}), ConfigError);
}

/// The definition read literally: the whole series at once, in long double.
std::vector<bool> window_spikes(const std::vector<double>& series, const SpikeRule& rule) {
  std::vector<bool> spikes;
  for (std::size_t i = 0; i < series.size(); ++i) {
    std::vector<long double> before;
    for (std::size_t j = i; j-- > 0 && std::ssize(before) < rule.window;) {
      if (std::isfinite(series[j])) before.push_back(series[j]);
    }
    const auto n = static_cast<long double>(before.size());
    long double mean = 0, squares = 0;
    for (const long double x : before) mean += x / n;
    for (const long double x : before) squares += (x - mean) * (x - mean);
    const long double std = std::sqrt(squares / n);
    const bool judged = !before.empty() && std::ssize(before) >= rule.min_history && std >= 1e-10L;
    spikes.push_back(!std::isfinite(series[i]) ||
                     (judged && std::abs(series[i] - mean) >= rule.threshold * std));
  }
  return spikes;
}

/// Multiples of 1/8 with many ties, now and then far out or not finite.
rc::Gen<std::vector<double>> any_series() {
  const auto near = rc::gen::map(rc::gen::inRange(-8, 9), [](int i) { return i / 8.0; });
  const auto far = rc::gen::map(rc::gen::inRange(-4000, 4001), [](int i) { return i / 8.0; });
  return rc::gen::container<std::vector<double>>(
      rc::gen::weightedOneOf<double>({{12, near},
                                      {4, rc::gen::just(0.25)},
                                      {2, far},
                                      {1, rc::gen::element(kNaN, kInfinity, -kInfinity)}}));
}

RC_GTEST_PROP(SpikeDetector, equals_the_definition_applied_to_the_whole_series, ()) {
  const std::vector<double> series = *rc::gen::resize(200, any_series());
  // Deviation over std is the root of a rational: against these no verdict hangs on the last bit.
  const SpikeRule rule{.window = *rc::gen::inRange<Index>(3, 30),
                       .threshold = *rc::gen::element(1.0, 2.0) * std::numbers::pi,
                       .min_history = *rc::gen::inRange<Index>(0, 4)};
  const std::vector<bool> expected = window_spikes(series, rule);
  SpikeDetector detector(rule);
  for (std::size_t i = 0; i < series.size(); ++i) RC_ASSERT(detector.add(series[i]) == expected[i]);
  RC_ASSERT(detector.spikes() == std::count(expected.begin(), expected.end(), true));
  RC_TAG(detector.spikes() > 0);
}

RC_GTEST_PROP(SpikeDetector, continues_from_its_exported_state_as_if_never_stopped, ()) {
  const std::vector<double> series = *rc::gen::resize(100, any_series());
  const SpikeRule rule{.window = 20, .threshold = 2.5, .min_history = 3};
  const auto cut = *rc::gen::inRange<std::size_t>(0, series.size() + 1);
  SpikeDetector whole(rule), before(rule), after(rule);
  for (std::size_t i = 0; i < cut; ++i) RC_ASSERT(whole.add(series[i]) == before.add(series[i]));
  after.restore(before.history(), before.count(), before.spikes());
  for (std::size_t i = cut; i < series.size(); ++i) {
    RC_ASSERT(whole.add(series[i]) == after.add(series[i]));
  }
  RC_ASSERT(whole.history() == after.history());
  RC_ASSERT(whole.score() == after.score());
}

}  // namespace
}  // namespace difftape::stats
