// Compares every spike definition with a literal implementation, on random series.
#include <numbers>

#include "core/random.h"
#include "tests/support/test.h"
#include "train/stats/spikes.h"

namespace difftape::stats {
namespace {

struct Judged {
  SpikeDefinition definition;
  SpikeSeries series = SpikeSeries::loss;
};
constexpr std::array kAll{
    Judged{SpikeDefinition::olmo2},  Judged{SpikeDefinition::olmo_core},
    Judged{SpikeDefinition::llmc},   Judged{SpikeDefinition::zclip},
    Judged{SpikeDefinition::median}, Judged{SpikeDefinition::median, SpikeSeries::grad_norm}};

/// Returns the finite values of a series before index `end`.
std::vector<long double> finite_before(const std::vector<double>& series, std::size_t end) {
  std::vector<long double> values;
  for (std::size_t i = 0; i < end; ++i)
    if (std::isfinite(series[i])) values.push_back(series[i]);
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

/// Verdict on series[at] of the three rules with a window, from the whole series at once.
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

long double median_of(std::vector<long double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/// Verdict of median.
bool median_verdict(const std::vector<double>& series, std::size_t at, const SpikeRule& rule,
                    SpikeSeries holds) {
  std::vector<long double> window = finite_before(series, at);
  if (std::ssize(window) > rule.window) window.erase(window.begin(), window.end() - rule.window);
  if (window.empty() || std::ssize(window) < rule.min_history) return false;
  const long double median = median_of(window);
  if (holds == SpikeSeries::grad_norm) return median >= 1e-10L && series[at] > 5 * median;
  for (long double& value : window) value = std::abs(value - median);
  const long double deviation = median_of(window);
  return deviation >= 1e-10L && series[at] - median > 8 * deviation;
}

/// Verdict of zclip, which follows all values from the first.
bool moving_verdict(const std::vector<double>& series, std::size_t at, const SpikeRule& rule) {
  std::vector<long double> values = finite_before(series, at);
  const auto warm_up = static_cast<std::size_t>(rule.min_history);
  if (values.size() < warm_up) return false;
  auto [mean, variance] = spread_of({values.begin(), values.begin() + rule.min_history});
  variance /= static_cast<long double>(warm_up);
  const auto z = [&mean = mean, &variance = variance](long double x) {
    return (x - mean) / (std::sqrt(variance) + 1e-6L);
  };
  for (std::size_t i = warm_up; i < values.size(); ++i) {
    long double x = values[i];
    if (z(x) > rule.threshold)
      x = mean + rule.threshold * std::sqrt(variance) * rule.threshold / z(x);
    mean = 0.97L * mean + 0.03L * x;
    variance = 0.97L * variance + 0.03L * (x - mean) * (x - mean);
  }
  return z(series[at]) > rule.threshold;
}

std::vector<bool> spikes_by_definition(const std::vector<double>& series, const SpikeRule& rule,
                                       SpikeSeries holds) {
  const auto verdict = [&](std::size_t at) {
    if (rule.definition == SpikeDefinition::median) return median_verdict(series, at, rule, holds);
    return rule.definition == SpikeDefinition::zclip ? moving_verdict(series, at, rule)
                                                     : window_verdict(series, at, rule);
  };
  std::vector<bool> spikes;
  for (std::size_t i = 0; i < series.size(); ++i)
    spikes.push_back(!std::isfinite(series[i]) || verdict(i));
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

/// Returns 0 to 49 values: multiples of 1/8 with many ties, with some outliers and non-finite
/// values. Without these, one series in eight is constant.
std::vector<double> random_series(Draws& draws) {
  const std::array odd{kNaN, kInfinity, -kInfinity};
  const bool constant = draws.below(8) == 0;
  std::vector<double> series(static_cast<std::size_t>(draws.below(50)));
  for (double& value : series) {
    const Index kind = draws.below(24);
    if (kind == 0)
      value = odd[static_cast<std::size_t>(draws.below(3))];
    else if (kind == 1)
      value = static_cast<double>(draws.below(8001) - 4000) / 8;
    else
      value = constant ? 0.375 : static_cast<double>(draws.below(17) - 8) / 8;
  }
  return series;
}

/// Thresholds for which no verdict depends on the last bit: deviation over std is the root of a
/// rational number.
SpikeRule random_rule(Draws& draws, SpikeDefinition definition) {
  const double threshold = std::numbers::pi * (draws.below(2) == 0 ? 0.5 : 1.0);
  if (definition == SpikeDefinition::zclip) return {0, threshold, 1 + draws.below(12), definition};
  const Index window = 12 + draws.below(20);
  const Index history =
      definition == SpikeDefinition::llmc ? window - draws.below(4) : 1 + draws.below(6);
  return {window, definition == SpikeDefinition::median ? 0 : threshold, history, definition};
}

TEST(SpikeRules, equal_their_definitions_on_a_hundred_thousand_random_series) {
  constexpr std::uint64_t kSeries = 100000;
  std::array<Index, kAll.size()> judged{};
  for (std::uint64_t seed = 0; seed < kSeries; ++seed) {
    Draws draws(seed);
    const std::vector<double> series = random_series(draws);
    for (std::size_t d = 0; d < kAll.size(); ++d) {
      const SpikeRule rule = random_rule(draws, kAll[d].definition);
      const std::vector<bool> expected = spikes_by_definition(series, rule, kAll[d].series);
      SpikeDetector detector(rule, kAll[d].series);
      for (std::size_t i = 0; i < series.size(); ++i) {
        ASSERT_EQ(detector.add(series[i]), expected[i])
            << to_string(kAll[d].definition) << ", series " << seed << ", value " << i;
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
    for (const auto& [definition, holds] : kAll) {
      const SpikeRule rule = random_rule(draws, definition);
      const auto cut = static_cast<std::size_t>(draws.below(std::ssize(series) + 1));
      SpikeDetector whole(rule, holds), after(rule, holds);
      for (std::size_t i = 0; i < cut; ++i) whole.add(series[i]);
      after.restore(whole.history(), whole.count(), whole.spikes(), whole.moving());
      for (std::size_t i = cut; i < series.size(); ++i)
        ASSERT_EQ(whole.add(series[i]), after.add(series[i]));
      ASSERT_EQ(whole.history(), after.history());
      ASSERT_EQ(whole.moving(), after.moving());
      ASSERT_EQ(whole.score(), after.score());
    }
  }
}

}  // namespace
}  // namespace difftape::stats
