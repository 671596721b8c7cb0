#include "train/stats/spikes.h"

#include <numeric>
#include <set>

#include "core/random.h"
#include "tests/support/test.h"

namespace difftape::stats {
namespace {

/// Returns the `n` values 1, 3, 1, 3, ...: median 2, MAD 1, and then one more value.
std::vector<double> ones_and_threes(int n, double last) {
  std::vector<double> values;
  for (int i = 0; i < n; ++i) values.push_back(i % 2 == 0 ? 1 : 3);
  values.push_back(last);
  return values;
}

using Indices = std::vector<std::size_t>;
double above(double x) { return std::nextafter(x, kInfinity); }

TEST(Spikes, are_losses_8_deviations_and_gradient_norms_5_times_above_the_median) {
  for (const SpikeSeries series : {SpikeSeries::loss, SpikeSeries::grad_norm}) {
    EXPECT_EQ(spikes_of(ones_and_threes(64, 10), series), Indices{}) << "2 + 8, or 5 times 2";
    EXPECT_EQ(spikes_of(ones_and_threes(64, above(10)), series), Indices{64});
    EXPECT_EQ(spikes_of(ones_and_threes(63, 1000), series), Indices{}) << "64 come first";
    EXPECT_EQ(spikes_of(ones_and_threes(64, -1000), series), Indices{}) << "a fall";
  }
  const std::vector<double> shifted = [] {
    std::vector<double> values = ones_and_threes(64, 12);
    for (double& value : values) value += 10;
    return values;
  }();
  EXPECT_EQ(spikes_of(shifted, SpikeSeries::loss), Indices{64}) << "12 + 8 is below 22";
  EXPECT_EQ(spikes_of(shifted, SpikeSeries::grad_norm), Indices{}) << "5 times 12 is not";
}

TEST(Spikes, are_all_values_that_are_not_finite) {
  EXPECT_EQ(spikes_of(std::vector{kInfinity, 1.0, kNaN, -kInfinity}, SpikeSeries::loss),
            (Indices{0, 2, 3}));
}

TEST(Spikes, do_not_occur_after_a_constant_series) {
  std::vector<double> values(80, 2.5);
  values.push_back(3.5);
  EXPECT_EQ(spikes_of(values, SpikeSeries::loss), Indices{});
}

long double median_of(std::vector<long double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/// Returns the last finite values before index `end`, at most `count`.
std::vector<long double> finite_before(const std::vector<double>& series, std::size_t end,
                                       std::size_t count) {
  std::vector<long double> values;
  for (std::size_t i = 0; i < end; ++i)
    if (std::isfinite(series[i])) values.push_back(series[i]);
  if (values.size() > count)
    values.erase(values.begin(), values.end() - static_cast<std::ptrdiff_t>(count));
  return values;
}

/// The definition in spikes.h, from the whole series at once.
bool is_spike(const std::vector<double>& series, std::size_t at, SpikeSeries holds) {
  if (!std::isfinite(series[at])) return true;
  std::vector<long double> window = finite_before(series, at, 128);
  if (window.size() < 64) return false;
  const long double median = median_of(window);
  if (holds == SpikeSeries::grad_norm) return median >= 1e-10L && series[at] > 5 * median;
  for (long double& value : window) value = std::abs(value - median);
  const long double deviation = median_of(window);
  return deviation >= 1e-10L && series[at] - median > 8 * deviation;
}

/// The definition of OLMo 2, from the whole series at once.
double score(const std::vector<double>& series) {
  int spikes = 0;
  for (std::size_t at = 0; at < series.size(); ++at) {
    const std::vector<long double> window = finite_before(series, at, 1000);
    const auto n = static_cast<long double>(window.size());
    long double squares = 0;
    const long double mean = std::accumulate(window.begin(), window.end(), 0.0L) / n;
    for (const long double x : window) squares += (x - mean) * (x - mean);
    const long double std = std::sqrt(squares / n);
    const bool far = n >= 50 && std >= 1e-10L && std::abs(series[at] - mean) >= 7 * std;
    spikes += !std::isfinite(series[at]) || far ? 1 : 0;
  }
  return 100.0 * spikes / static_cast<double>(series.size());
}

/// Returns multiples of 1/8 with many ties, some outliers and non-finite values. Without these, one
/// series in eight is constant.
std::vector<double> random_series(std::uint64_t seed, std::size_t length) {
  const RandomStream stream(seed, "spike series");
  std::uint64_t next = 0;
  const auto below = [&](std::uint64_t bound) {
    return static_cast<double>(stream.below(next++, bound));
  };
  const std::array odd{kNaN, kInfinity, -kInfinity};
  const bool constant = below(8) == 0;
  std::vector<double> series(length);
  for (double& value : series) {
    const double kind = below(24);
    if (kind == 0)
      value = odd[static_cast<std::size_t>(below(3))];
    else if (kind == 1)
      value = (below(8001) - 4000) / 8;
    else
      value = constant ? 0.375 : 2 + (below(17) - 8) / 8;
  }
  return series;
}

TEST(Spikes, equal_their_definition_on_random_series) {
  Index found = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<double> series = random_series(seed, 300);
    for (const SpikeSeries holds : {SpikeSeries::loss, SpikeSeries::grad_norm}) {
      Indices expected;
      for (std::size_t at = 0; at < series.size(); ++at)
        if (is_spike(series, at, holds)) expected.push_back(at);
      ASSERT_EQ(spikes_of(series, holds), expected) << seed;
      for (const std::size_t at : expected) found += std::isfinite(series[at]) ? 1 : 0;
    }
  }
  EXPECT_GT(found, 1000) << "the comparison is not empty";
}

TEST(SpikeScore, equals_its_definition_on_random_series) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<double> series = random_series(seed, 1300);
    for (double& value : series) value = std::abs(value) > 100 ? 3 : value;
    series[700] = series[1250] = 300;  // of which the second has the first in its window
    ASSERT_EQ(spike_score(series), score(series)) << seed;
  }
}

TEST(SpikeScore, is_the_percentage_of_values_7_deviations_from_the_mean) {
  std::vector<double> values;
  for (int i = 0; i < 50; ++i) values.push_back(i % 2 == 0 ? 1 : -1);  // mean 0, deviation 1
  const auto with = [&](double last, std::size_t before = 50) {
    std::vector<double> all(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(before));
    all.push_back(last);
    return spike_score(all);
  };
  EXPECT_DOUBLE_EQ(with(7), 100.0 / 51);
  EXPECT_DOUBLE_EQ(with(-7), 100.0 / 51) << "a fall counts";
  EXPECT_EQ(with(6.9), 0);
  EXPECT_EQ(with(1000, 49), 0) << "50 come first";
  EXPECT_DOUBLE_EQ(with(kNaN, 3), 25);
  EXPECT_TRUE(std::isnan(spike_score({})));
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

class PlantedSpikes
    : public testing::TestWithParam<std::tuple<SpikeSeries, std::uint64_t, std::uint64_t>> {};

TEST_P(PlantedSpikes, are_all_found_for_any_count) {
  const auto [series, length, seed] = GetParam();
  const RandomStream noise(seed, "noise");
  const auto value_of = series == SpikeSeries::loss ? loss_of : grad_norm_of;
  for (const std::size_t count : kPlanted) {
    const std::set<std::uint64_t> at = planted(count, length);
    std::vector<double> values;
    for (std::uint64_t step = 1; step <= kSteps; ++step)
      values.push_back(value_of(noise, step, at.contains(step)));
    double found = 0;
    for (const std::size_t spike : spikes_of(values, series)) found += spike >= kScoredAfter;
    const auto true_count = static_cast<double>(count);
    EXPECT_NEAR(found, true_count, 1 + true_count / 50);
  }
}

INSTANTIATE_TEST_SUITE_P(SpreadAndInClusters, PlantedSpikes,
                         testing::Combine(testing::Values(SpikeSeries::loss,
                                                          SpikeSeries::grad_norm),
                                          testing::Values(1u, 16u), testing::Values(1u, 2u, 3u)));

}  // namespace
}  // namespace difftape::stats
