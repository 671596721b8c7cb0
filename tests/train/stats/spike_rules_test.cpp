// Every definition of a spike at its edges.
#include "core/random.h"
#include "tests/support/test.h"
#include "train/stats/spikes.h"

namespace difftape::stats {
namespace {

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

TEST(SpikeRules, have_the_parameters_of_their_sources) {
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

TEST(SpikeRules, use_given_parameters) {
  const SpikeRule rule = make_spike_rule(SpikeDefinition::olmo_core, 200, 4.5);
  EXPECT_EQ(rule.window, 200);
  EXPECT_EQ(rule.threshold, 4.5);
  EXPECT_EQ(rule.min_history, 99) << "its own follows its window";
  EXPECT_EQ(make_spike_rule(SpikeDefinition::llmc, 64).min_history, 64);
  EXPECT_EQ(make_spike_rule(SpikeDefinition::olmo2, 0, 0, 3).min_history, 3);
}

TEST(SpikeRules, that_could_never_detect_a_spike_are_rejected) {
  EXPECT_THAT([] { SpikeDetector(make_spike_rule(SpikeDefinition::zclip, 100)); },
              ThrowsMessage<ConfigError>("log: zclip uses a moving average and has no window, "
                                         "but log.spike_window is 100; leave it at 0"));
  EXPECT_THAT([] { SpikeDetector(make_spike_rule(SpikeDefinition::llmc, 50, 7)); },
              ThrowsMessage<ConfigError>(
                  "log: in llmc the window contains the judged value, so none can be 7 standard "
                  "deviations from the mean of 50; lower log.spike_threshold below 7 or raise "
                  "log.spike_window"));
  EXPECT_NO_THROW(SpikeDetector(make_spike_rule(SpikeDefinition::llmc, 51, 7)));
  EXPECT_THAT(unsupported_reason(make_spike_rule(SpikeDefinition::olmo2, 10)),
              HasSubstr("need 50 values before the first verdict, but the window holds 10"));
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

TEST(MedianRule, rejects_other_thresholds) {
  EXPECT_THAT([] { SpikeDetector(make_spike_rule(SpikeDefinition::median, 0, 6)); },
              ThrowsMessage<ConfigError>(
                  "log: median has two fixed thresholds, 5 medians of the gradient norm and 8 "
                  "median absolute deviations of the loss, but log.spike_threshold is 6; leave it "
                  "at 0"));
}

TEST(OlmoCoreRule, detects_values_more_than_six_sample_deviations_above_the_mean) {
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

TEST(LlmcRule, judges_a_value_by_a_window_that_contains_it) {
  // a = 127 values with sum -1 and sum of squares 127, and x: z = (x - m) / s.
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

TEST(ZclipRule, starts_after_25_values_and_detects_high_values_only) {
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

TEST(ZclipRule, updates_its_mean_with_the_clipped_value_of_a_spike) {
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

constexpr std::uint64_t kSteps = 3200;
constexpr std::uint64_t kScoredAfter = kSteps / 10;
constexpr std::array<std::size_t, 5> kPlanted{0, 5, 20, 80, 320};

/// Returns `count` of the scored steps, in runs of `length` steps.
std::set<std::uint64_t> planted(std::size_t count, std::uint64_t length) {
  const RandomStream draws(7, "planted");
  const std::uint64_t places = (kSteps - kScoredAfter) / length;
  std::set<std::uint64_t> steps;
  for (std::uint64_t i = 0; steps.size() < count; ++i) {
    const std::uint64_t first = kScoredAfter + 1 + length * draws.below(i, places);
    for (std::uint64_t j = 0; j < length && steps.size() < count; ++j) steps.insert(first + j);
  }
  return steps;
}

/// Returns a noisy loss that falls as a power of the step; a planted step adds 0.6 to 1.2 nats.
double loss_of(const RandomStream& noise, std::uint64_t step, bool spikes) {
  const double at = static_cast<double>(step);
  return 1.2 + 3 / std::sqrt(1 + at / 20) + 0.03 * noise.normal(4 * step) +
         (spikes ? 0.6 * (1 + noise.uniform(4 * step + 1)) : 0);
}

/// Returns a log-normal gradient norm that falls to a level. One step in fifty is up to three times
/// as large; a planted step is 8 to 16 times as large.
double grad_norm_of(const RandomStream& noise, std::uint64_t step, bool spikes) {
  const double level = 0.3 + 2 / (1 + static_cast<double>(step) / 30);
  const double tail = noise.below(4 * step, 50) == 0 ? 1 + 2 * noise.uniform(4 * step + 1) : 1;
  return level * std::exp(0.25 * noise.normal(4 * step + 2)) * tail *
         (spikes ? 8 * (1 + noise.uniform(4 * step + 3)) : 1);
}

/// Returns the number of spikes among the scored steps by a rule, for each of kPlanted.
std::vector<Index> found(SpikeDefinition definition, SpikeSeries series, std::uint64_t length,
                         std::uint64_t seed) {
  const RandomStream noise(seed, "noise");
  const auto value_of = series == SpikeSeries::loss ? loss_of : grad_norm_of;
  std::vector<Index> counts;
  for (const std::size_t count : kPlanted) {
    const std::set<std::uint64_t> at = planted(count, length);
    SpikeDetector detector(make_spike_rule(definition), series);
    Index spikes = 0;
    for (std::uint64_t step = 1; step <= kSteps; ++step) {
      const bool spike = detector.add(value_of(noise, step, at.contains(step)));
      spikes += spike && step > kScoredAfter ? 1 : 0;
    }
    counts.push_back(spikes);
  }
  return counts;
}

class PlantedSpikes
    : public testing::TestWithParam<std::tuple<SpikeSeries, std::uint64_t, std::uint64_t>> {};

TEST_P(PlantedSpikes, are_all_found_by_the_median_for_any_count) {
  const auto [series, length, seed] = GetParam();
  const std::vector<Index> counts = found(SpikeDefinition::median, series, length, seed);
  for (std::size_t i = 0; i < kPlanted.size(); ++i) {
    const auto true_count = static_cast<double>(kPlanted[i]);
    EXPECT_NEAR(static_cast<double>(counts[i]), true_count, 1 + true_count / 50);
    if (i > 0) {
      EXPECT_GT(counts[i], counts[i - 1]);
    }
  }
}

TEST_P(PlantedSpikes, saturate_the_rule_of_olmo_core_because_they_enter_its_window) {
  const auto [series, length, seed] = GetParam();
  const std::vector<Index> counts = found(SpikeDefinition::olmo_core, series, length, seed);
  EXPECT_LT(counts[3], 80 / 2);
  EXPECT_LT(counts[4], 320 / 5);
}

INSTANTIATE_TEST_SUITE_P(SpreadAndInClusters, PlantedSpikes,
                         testing::Combine(testing::Values(SpikeSeries::loss,
                                                          SpikeSeries::grad_norm),
                                          testing::Values(1u, 16u), testing::Values(1u, 2u, 3u)));

}  // namespace
}  // namespace difftape::stats
