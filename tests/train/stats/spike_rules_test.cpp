// Every definition of a spike at its edges.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/random.h"
#include "core/real.h"
#include "train/stats/spikes.h"

namespace difftape::stats {
namespace {

using testing::ThrowsMessage;

constexpr std::array kRules{SpikeDefinition::median, SpikeDefinition::olmo2,
                            SpikeDefinition::olmo_core, SpikeDefinition::llmc,
                            SpikeDefinition::zclip};

/// After `count` values +1, -1, ...: mean 0, population std 1 if `count` is even.
SpikeDetector warmed_up(const char* rule, int count) {
  SpikeDetector detector(make_spike_rule(from_string<SpikeDefinition>(rule).value()));
  for (int i = 0; i < count; ++i) EXPECT_FALSE(detector.add(i % 2 == 0 ? 1 : -1)) << i;
  return detector;
}

double above(double value) { return std::nextafter(value, 1e9); }

TEST(SpikeRules, have_the_numbers_of_their_sources) {
  const auto numbers = [](const char* word) {
    const SpikeRule rule = make_spike_rule(from_string<SpikeDefinition>(word).value());
    return std::tuple(rule.window, rule.threshold, rule.min_history);
  };
  EXPECT_EQ(numbers("median"), std::tuple(128, 0, 64));
  EXPECT_EQ(numbers("olmo2"), std::tuple(1000, 7, 50));
  EXPECT_EQ(numbers("olmo_core"), std::tuple(128, 6, 63));
  EXPECT_EQ(numbers("llmc"), std::tuple(128, 7, 128));
  EXPECT_EQ(numbers("zclip"), std::tuple(0, 2.5, 25));
  EXPECT_EQ(names<SpikeDefinition>(),
            (std::vector<std::string>{"median", "olmo2", "olmo_core", "llmc", "zclip"}));
  for (const SpikeDefinition each : kRules) EXPECT_EQ(make_spike_rule(each).definition, each);
}

TEST(SpikeRules, take_the_numbers_that_are_given) {
  const SpikeRule rule = make_spike_rule(SpikeDefinition::olmo_core, 200, 4.5);
  EXPECT_EQ(rule.window, 200);
  EXPECT_EQ(rule.threshold, 4.5);
  EXPECT_EQ(rule.min_history, 99) << "its own follows its window";
  EXPECT_EQ(make_spike_rule(SpikeDefinition::llmc, 64).min_history, 64);
  EXPECT_EQ(make_spike_rule(SpikeDefinition::olmo2, 0, 0, 3).min_history, 3);
}

TEST(SpikeRules, that_can_never_judge_are_refused) {
  EXPECT_THAT(
      [] { SpikeDetector(make_spike_rule(SpikeDefinition::zclip, 100)); },
      ThrowsMessage<ConfigError>("log: zclip forgets by a moving average and has no window, "
                                 "but log.spike_window is 100; leave it at 0"));
  EXPECT_THAT([] { SpikeDetector(make_spike_rule(SpikeDefinition::llmc, 50, 7)); },
              ThrowsMessage<ConfigError>(
                  "log: in llmc the window holds the value it judges, so that none is 7 standard "
                  "deviations away from the mean of 50; lower log.spike_threshold below 7 or raise "
                  "log.spike_window"));
  EXPECT_NO_THROW(SpikeDetector(make_spike_rule(SpikeDefinition::llmc, 51, 7)));
  EXPECT_THROW(SpikeDetector(make_spike_rule(SpikeDefinition::olmo_core, 10)), ConfigError)
      << "20 come first";
}

TEST(MedianRule, judges_a_loss_by_deviations_and_a_gradient_norm_by_multiples_of_the_median) {
  // 1, 3, 1, 3, ...: median 2, MAD 1.
  const auto after = [](SpikeSeries series, int count) {
    SpikeDetector detector(make_spike_rule(SpikeDefinition::median), series);
    for (int i = 0; i < count; ++i) EXPECT_FALSE(detector.add(i % 2 == 0 ? 1 : 3)) << i;
    return detector;
  };
  EXPECT_FALSE(after(SpikeSeries::loss, 64).add(10)) << "2 + 8";
  EXPECT_TRUE(after(SpikeSeries::loss, 64).add(above(10)));
  EXPECT_FALSE(after(SpikeSeries::grad_norm, 64).add(10)) << "5 times 2";
  EXPECT_TRUE(after(SpikeSeries::grad_norm, 64).add(above(10)));
  for (const SpikeSeries series : {SpikeSeries::loss, SpikeSeries::grad_norm}) {
    EXPECT_FALSE(after(series, 63).add(1000)) << "64 come first";
    EXPECT_TRUE(after(series, 0).add(kInfinity));
    SpikeDetector detector = after(series, 128);
    for (int i = 0; i < 60; ++i) EXPECT_TRUE(detector.add(1000)) << i;
    EXPECT_EQ(detector.judge(0).center, 3) << "60 of them move the median within the rest";
  }
}

TEST(MedianRule, takes_no_other_threshold_than_its_own) {
  EXPECT_THAT([] { SpikeDetector(make_spike_rule(SpikeDefinition::median, 0, 6)); },
              ThrowsMessage<ConfigError>(
                  "log: median has two thresholds of its own, 5 medians of the gradient norm and 8 "
                  "median absolute deviations of the loss, but log.spike_threshold is 6; leave it "
                  "at 0"));
}

TEST(OlmoCoreRule, judges_above_six_sample_deviations_and_only_above) {
  const double std = std::sqrt(64.0 / 63);
  EXPECT_TRUE(warmed_up("olmo_core", 64).add(6 * std + 1e-9));
  EXPECT_FALSE(warmed_up("olmo_core", 64).add(6 * std - 1e-9));
  EXPECT_FALSE(warmed_up("olmo_core", 64).add(-100));
}

TEST(OlmoCoreRule, has_no_verdict_before_63_values) {
  EXPECT_FALSE(warmed_up("olmo_core", 62).add(1000));
  EXPECT_TRUE(warmed_up("olmo_core", 63).add(1000));
}

TEST(LlmcRule, has_no_verdict_before_its_window_is_full) {
  EXPECT_FALSE(warmed_up("llmc", 127).add(1000));
  EXPECT_TRUE(warmed_up("llmc", 128).add(1000));
  EXPECT_FALSE(warmed_up("llmc", 128).add(-1000)) << "only above";
}

TEST(LlmcRule, judges_a_value_by_a_window_that_holds_it) {
  // Of a = 127 values with sum -1 and sum of squares 127, and x: z = (x - m) / s.
  const auto z = [](double x) {
    const double mean = (x - 1) / 128, square = (127 + x * x) / 128;
    return (x - mean) / std::sqrt(square - mean * mean);
  };
  double low = 1, high = 100;
  while (above(low) < high) {
    const double middle = std::midpoint(low, high);
    (z(middle) > 7 ? high : low) = middle;
  }
  EXPECT_GT(low, 8.5) << "further than 7 deviations of the window before it";
  EXPECT_FALSE(warmed_up("llmc", 128).add(low - 1e-9));
  EXPECT_TRUE(warmed_up("llmc", 128).add(high + 1e-9));
  EXPECT_DOUBLE_EQ(warmed_up("llmc", 128).judge(9).center, 8.0 / 128);
}

TEST(ZclipRule, starts_after_25_values_and_judges_above_only) {
  EXPECT_FALSE(warmed_up("zclip", 24).add(1000));
  EXPECT_TRUE(warmed_up("zclip", 25).add(1000));
  EXPECT_FALSE(warmed_up("zclip", 25).add(-1000));
  const SpikeVerdict verdict = warmed_up("zclip", 25).judge(0);
  EXPECT_DOUBLE_EQ(verdict.center, 1.0 / 25);
  EXPECT_DOUBLE_EQ(verdict.spread, std::sqrt(1 - 1.0 / 625));
  const double limit = verdict.center + 2.5 * (verdict.spread + 1e-6);
  EXPECT_FALSE(warmed_up("zclip", 25).add(limit - 1e-12));
  EXPECT_TRUE(warmed_up("zclip", 25).add(limit + 1e-12));
}

TEST(ZclipRule, remembers_a_spike_as_what_it_is_clipped_to) {
  SpikeDetector detector = warmed_up("zclip", 25);
  const SpikeVerdict before = detector.judge(0);
  ASSERT_TRUE(detector.add(1000));
  const double z = (1000 - before.center) / (before.spread + 1e-6);
  const double clipped = before.center + 2.5 * before.spread / (z / 2.5);
  const double mean = 0.97 * before.center + 0.03 * clipped;
  EXPECT_DOUBLE_EQ(detector.moving()->mean, mean);
  EXPECT_DOUBLE_EQ(detector.moving()->variance, 0.97 * before.spread * before.spread +
                                                    0.03 * (clipped - mean) * (clipped - mean));
  EXPECT_TRUE(detector.add(1000)) << "it did not widen the deviation";
}

TEST(SpikeRules, judging_changes_nothing) {
  for (const SpikeDefinition definition : kRules) {
    SpikeDetector detector(make_spike_rule(definition));
    for (int i = 0; i < 200; ++i) {
      const double value = i % 2 == 0 ? 1 : -1;
      EXPECT_FALSE(detector.judge(value).spike);
      detector.add(value);
    }
    const auto history = detector.history();
    EXPECT_TRUE(detector.judge(1000).spike);
    EXPECT_TRUE(detector.judge(kNaN).spike);
    EXPECT_EQ(detector.history(), history);
    EXPECT_EQ(detector.count(), 200);
    EXPECT_EQ(detector.spikes(), 0);
  }
}

/// What running sums have trouble with: a level far from 0, spreads that are rounding errors,
/// spikes that enter the window, jumps of the level, infinities.
double hard_to_judge(const RandomStream& stream, std::uint64_t i) {
  constexpr std::array kLevels{0.0, 5.0, 1e9, -1e-3, 5.0, 1e200};
  constexpr std::array kSpreads{1.0, 1e-7, 0.0, 1e-12};
  const std::uint64_t part = i / 1500;
  const double level = kLevels[part % kLevels.size()], spread = kSpreads[part % kSpreads.size()];
  if (i % 777 == 776) return level + 1e12;
  if (i % 901 == 900) return std::numeric_limits<double>::infinity();
  const double far =
      i % 40 == 39 ? 7 * (0.9 + 0.2 * stream.uniform(3 * i + 2)) : stream.normal(3 * i);
  return level + spread * far;
}

TEST(SpikeRules, are_those_of_all_of_the_window_where_running_sums_decide) {
  const RandomStream stream(1, "hard");
  for (const SpikeDefinition definition : kRules) {
    SpikeDetector detector(make_spike_rule(definition));
    Index by_sums = 0;
    for (std::uint64_t i = 0; i < 24 * 1500; ++i) {
      const double value = hard_to_judge(stream, i);
      const SpikeVerdict whole = detector.judge(value), found = detector.take(value);
      ASSERT_EQ(found.spike, whole.spike) << to_string(definition) << " " << i << " " << value;
      if (found.spike && !std::isnan(whole.center)) {
        EXPECT_EQ(found.center, whole.center);
        EXPECT_EQ(found.spread, whole.spread);
      }
      by_sums += std::isnan(found.center) && !std::isnan(whole.center) ? 1 : 0;
    }
    EXPECT_GT(detector.spikes(), 20);
    const bool windowed =
        definition == SpikeDefinition::olmo2 || definition == SpikeDefinition::olmo_core;
    EXPECT_EQ(by_sums > 5000, windowed) << to_string(definition) << " " << by_sums;
  }
}

TEST(SlidingWindow, has_rough_moments_beside_the_exact_ones_or_none) {
  const RandomStream stream(1, "window");
  SlidingWindow window;
  EXPECT_FALSE(window.rough_moments());
  Index known = 0;
  for (std::uint64_t i = 0; i < 12000; ++i) {
    const double value = hard_to_judge(stream, i);
    if (!std::isfinite(value)) continue;
    window.add(value);
    if (window.size() > 100) window.drop_oldest();
    const std::optional<Moments> rough = window.rough_moments();
    if (!rough) continue;
    const Moments exact = window.moments();
    known += 1;
    EXPECT_NEAR(rough->squares / exact.squares, 1, 1e-3) << i;
    EXPECT_LT(std::abs(rough->mean - exact.mean), 1e-3 * std::sqrt(exact.squares / exact.n)) << i;
  }
  EXPECT_GT(known, 3000);
}

}  // namespace
}  // namespace difftape::stats
