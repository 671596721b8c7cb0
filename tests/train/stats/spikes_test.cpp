#include "train/stats/spikes.h"

#include "tests/support/test.h"

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

TEST(SpikeDetector, a_rule_that_could_never_detect_a_spike_is_rejected) {
  EXPECT_THAT(
      ([] { SpikeDetector({.window = 40, .threshold = 7, .min_history = 50}); }),
      ThrowsMessage<ConfigError>(
          "log: no value could ever be a spike with spike_window 40, spike_min_history "
          "50 and spike_threshold 7; need 1 <= spike_window, spike_min_history <= spike_window "
          "and spike_threshold > 0"));
  EXPECT_THROW(SpikeDetector({.window = 100, .threshold = 0, .min_history = 50}), ConfigError);
  EXPECT_THROW(SpikeDetector({.window = 0, .threshold = 7, .min_history = 0}), ConfigError);
}

}  // namespace
}  // namespace difftape::stats
