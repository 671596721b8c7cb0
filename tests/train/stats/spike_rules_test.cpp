// Every definition of a spike: at its edges, and against the definition read literally.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "core/error.h"
#include "core/random.h"
#include "train/stats/spikes.h"

namespace difftape::stats {
namespace {

using testing::ThrowsMessage;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array kAll{SpikeDefinition::olmo2, SpikeDefinition::olmo_core, SpikeDefinition::llmc,
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
  EXPECT_EQ(numbers("olmo2"), std::tuple(1000, 7, 50));
  EXPECT_EQ(numbers("olmo_core"), std::tuple(128, 6, 63));
  EXPECT_EQ(numbers("llmc"), std::tuple(128, 7, 128));
  EXPECT_EQ(numbers("zclip"), std::tuple(0, 2.5, 25));
  EXPECT_EQ(names<SpikeDefinition>(),
            (std::vector<std::string>{"olmo2", "olmo_core", "llmc", "zclip"}));
  for (const std::string& word : names<SpikeDefinition>()) {
    EXPECT_EQ(to_string(make_spike_rule(from_string<SpikeDefinition>(word).value()).definition),
              word);
  }
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
  EXPECT_DOUBLE_EQ(warmed_up("llmc", 128).judge(9).mean, 8.0 / 128);
}

TEST(ZclipRule, starts_after_25_values_and_judges_above_only) {
  EXPECT_FALSE(warmed_up("zclip", 24).add(1000));
  EXPECT_TRUE(warmed_up("zclip", 25).add(1000));
  EXPECT_FALSE(warmed_up("zclip", 25).add(-1000));
  const SpikeVerdict verdict = warmed_up("zclip", 25).judge(0);
  EXPECT_DOUBLE_EQ(verdict.mean, 1.0 / 25);
  EXPECT_DOUBLE_EQ(verdict.std, std::sqrt(1 - 1.0 / 625));
  const double limit = verdict.mean + 2.5 * (verdict.std + 1e-6);
  EXPECT_FALSE(warmed_up("zclip", 25).add(limit - 1e-12));
  EXPECT_TRUE(warmed_up("zclip", 25).add(limit + 1e-12));
}

TEST(ZclipRule, remembers_a_spike_as_what_it_is_clipped_to) {
  SpikeDetector detector = warmed_up("zclip", 25);
  const SpikeVerdict before = detector.judge(0);
  ASSERT_TRUE(detector.add(1000));
  const double z = (1000 - before.mean) / (before.std + 1e-6);
  const double clipped = before.mean + 2.5 * before.std / (z / 2.5);
  const double mean = 0.97 * before.mean + 0.03 * clipped;
  EXPECT_DOUBLE_EQ(detector.moving()->mean, mean);
  EXPECT_DOUBLE_EQ(detector.moving()->variance,
                   0.97 * before.std * before.std + 0.03 * (clipped - mean) * (clipped - mean));
  EXPECT_TRUE(detector.add(1000)) << "it did not widen the deviation";
}

/// The values of a series that are finite, before index `end`.
std::vector<long double> finite_before(const std::vector<double>& series, std::size_t end) {
  std::vector<long double> values;
  for (std::size_t i = 0; i < end; ++i) {
    if (std::isfinite(series[i])) values.push_back(series[i]);
  }
  return values;
}

struct Spread {
  long double mean, squares;
};
Spread spread_of(const std::vector<long double>& values) {
  long double mean = 0, squares = 0;
  for (const long double x : values) mean += x / static_cast<long double>(values.size());
  for (const long double x : values) squares += (x - mean) * (x - mean);
  return {mean, squares};
}

/// The verdict on series[at] of the three rules with a window, from the whole series at once.
bool window_verdict(const std::vector<double>& series, std::size_t at, const SpikeRule& rule) {
  std::vector<long double> window = finite_before(series, at);
  const auto keep = [&](Index count) {
    if (std::ssize(window) > count) window.erase(window.begin(), window.end() - count);
  };
  keep(rule.window);
  if (window.empty() || std::ssize(window) < rule.min_history) return false;
  if (rule.definition == SpikeDefinition::llmc) {
    window.push_back(series[at]);
    keep(rule.window);
  }
  const auto [mean, squares] = spread_of(window);
  const auto n = static_cast<long double>(window.size());
  const bool sample = rule.definition == SpikeDefinition::olmo_core;
  const long double std = std::sqrt(squares / (sample ? n - 1 : n));
  if (!(std >= 1e-10L)) return false;
  const long double far = (series[at] - mean) / std;
  return rule.definition == SpikeDefinition::olmo2 ? std::abs(far) >= rule.threshold
                                                   : far > rule.threshold;
}

/// That of zclip, following all values from the first.
bool moving_verdict(const std::vector<double>& series, std::size_t at, const SpikeRule& rule) {
  std::vector<long double> values = finite_before(series, at);
  const auto warm_up = static_cast<std::size_t>(rule.min_history);
  if (values.size() < warm_up) return false;
  auto [mean, variance] = spread_of({values.begin(), values.begin() + rule.min_history});
  variance /= static_cast<long double>(warm_up);
  const auto z = [&](long double x) { return (x - mean) / (std::sqrt(variance) + 1e-6L); };
  for (std::size_t i = warm_up; i < values.size(); ++i) {
    long double x = values[i];
    if (z(x) > rule.threshold)
      x = mean + rule.threshold * std::sqrt(variance) * rule.threshold / z(x);
    mean = 0.97L * mean + 0.03L * x;
    variance = 0.97L * variance + 0.03L * (x - mean) * (x - mean);
  }
  return z(series[at]) > rule.threshold;
}

std::vector<bool> spikes_by_definition(const std::vector<double>& series, const SpikeRule& rule) {
  std::vector<bool> spikes;
  for (std::size_t i = 0; i < series.size(); ++i) {
    spikes.push_back(!std::isfinite(series[i]) ||
                     (rule.definition == SpikeDefinition::zclip ? moving_verdict(series, i, rule)
                                                                : window_verdict(series, i, rule)));
  }
  return spikes;
}

/// Numbers of one random series after another.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : stream_(seed, "spike series") {}
  Index below(Index bound) {
    return static_cast<Index>(stream_.below(next_++, static_cast<std::uint64_t>(bound)));
  }

 private:
  RandomStream stream_;
  std::uint64_t next_ = 0;
};

/// 0 to 49 values: multiples of 1/8 with many ties, now and then far out or not finite; one series
/// in eight is constant but for those.
std::vector<double> random_series(Draws& draws) {
  const std::array odd{kNaN, kInfinity, -kInfinity};
  const bool constant = draws.below(8) == 0;
  std::vector<double> series(static_cast<std::size_t>(draws.below(50)));
  for (double& value : series) {
    const Index kind = draws.below(24);
    if (kind == 0) {
      value = odd[static_cast<std::size_t>(draws.below(3))];
    } else if (kind == 1) {
      value = static_cast<double>(draws.below(8001) - 4000) / 8;
    } else {
      value = constant ? 0.375 : static_cast<double>(draws.below(17) - 8) / 8;
    }
  }
  return series;
}

/// Thresholds by which no verdict hangs on the last bit: deviation over std is the root of a
/// rational.
SpikeRule random_rule(Draws& draws, SpikeDefinition definition) {
  const double threshold = std::numbers::pi * (draws.below(2) == 0 ? 0.5 : 1.0);
  if (definition == SpikeDefinition::zclip) return {0, threshold, 1 + draws.below(12), definition};
  const Index window = 12 + draws.below(20);
  const Index history =
      definition == SpikeDefinition::llmc ? window - draws.below(4) : 1 + draws.below(6);
  return {window, threshold, history, definition};
}

TEST(SpikeRules, equal_their_definitions_on_a_hundred_thousand_random_series) {
  constexpr std::uint64_t kSeries = 100000;
  std::array<Index, kAll.size()> judged{};
  for (std::uint64_t seed = 0; seed < kSeries; ++seed) {
    Draws draws(seed);
    const std::vector<double> series = random_series(draws);
    for (std::size_t d = 0; d < kAll.size(); ++d) {
      const SpikeRule rule = random_rule(draws, kAll[d]);
      const std::vector<bool> expected = spikes_by_definition(series, rule);
      SpikeDetector detector(rule);
      for (std::size_t i = 0; i < series.size(); ++i) {
        ASSERT_EQ(detector.add(series[i]), expected[i])
            << to_string(kAll[d]) << ", series " << seed << ", value " << i;
        judged[d] += std::isfinite(series[i]) && expected[i] ? 1 : 0;
      }
    }
  }
  for (const Index spikes : judged) EXPECT_GT(spikes, 10000) << "the comparison is not empty";
}

TEST(SpikeRules, continue_from_their_exported_state_bit_for_bit) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Draws draws(seed);
    const std::vector<double> series = random_series(draws);
    for (const SpikeDefinition definition : kAll) {
      const SpikeRule rule = random_rule(draws, definition);
      const auto cut = static_cast<std::size_t>(draws.below(std::ssize(series) + 1));
      SpikeDetector whole(rule), after(rule);
      for (std::size_t i = 0; i < cut; ++i) whole.add(series[i]);
      after.restore(whole.history(), whole.count(), whole.spikes(), whole.moving());
      for (std::size_t i = cut; i < series.size(); ++i) {
        ASSERT_EQ(whole.add(series[i]), after.add(series[i]));
      }
      ASSERT_EQ(whole.history(), after.history());
      ASSERT_EQ(whole.moving(), after.moving());
      ASSERT_EQ(whole.score(), after.score());
    }
  }
}

TEST(SpikeRules, judging_changes_nothing) {
  for (const SpikeDefinition definition : kAll) {
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

}  // namespace
}  // namespace difftape::stats
