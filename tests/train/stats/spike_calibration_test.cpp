// The number of spikes that a rule finds, where their true number is known: they are planted.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

#include "core/random.h"
#include "train/stats/spikes.h"

namespace difftape::stats {
namespace {

constexpr std::uint64_t kSteps = 3200;
constexpr std::uint64_t kScoredAfter = kSteps / 10;
constexpr std::array<std::size_t, 5> kPlanted{0, 5, 20, 80, 320};

/// `count` steps among those that are scored, in runs of `length` steps.
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

/// A loss that falls as a power of the step, with noise; a planted step adds 0.6 to 1.2 nats.
double loss_of(const RandomStream& noise, std::uint64_t step, bool spikes) {
  const double at = static_cast<double>(step);
  return 1.2 + 3 / std::sqrt(1 + at / 20) + 0.03 * noise.normal(4 * step) +
         (spikes ? 0.6 * (1 + noise.uniform(4 * step + 1)) : 0);
}

/// A gradient norm that falls to a level, log-normal with a tail: one step in fifty is up to three
/// times as large. A planted step is 8 to 16 times as large.
double grad_norm_of(const RandomStream& noise, std::uint64_t step, bool spikes) {
  const double level = 0.3 + 2 / (1 + static_cast<double>(step) / 30);
  const double tail = noise.below(4 * step, 50) == 0 ? 1 + 2 * noise.uniform(4 * step + 1) : 1;
  return level * std::exp(0.25 * noise.normal(4 * step + 2)) * tail *
         (spikes ? 8 * (1 + noise.uniform(4 * step + 3)) : 1);
}

/// How many scored steps are spikes by a rule, for each of kPlanted.
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

TEST_P(PlantedSpikes, are_all_found_by_the_median_whatever_their_number) {
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

TEST_P(PlantedSpikes, saturate_the_rule_of_olmo_core_whose_window_keeps_them) {
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
