// The reference values are those that tests/golden/size_trend.py prints.
#include "train/stats/size_trend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/random.h"

namespace difftape::stats {
namespace {

constexpr double kSizes[] = {67000, 230000, 670000};

/// Differences of sizes; with `shared` seeds each seed is the same at all of them.
std::vector<SizeGaps> sizes_of(const std::vector<std::vector<double>>& gaps, bool shared) {
  std::vector<SizeGaps> sizes;
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    SizeGaps& size = sizes.emplace_back(SizeGaps{kSizes[i], {}, gaps[i]});
    for (std::size_t j = 0; j < gaps[i].size(); ++j) size.seeds.push_back(shared ? j : 100 * i + j);
  }
  return sizes;
}

const std::vector<std::vector<double>> kEverywhere{
    {-0.0412, -0.0350, -0.0521, -0.0298, -0.0467, -0.0389, -0.0445, -0.0333},
    {-0.0301, -0.0288, -0.0352, -0.0297, -0.0361, -0.0270, -0.0338, -0.0312},
    {-0.0189, -0.0243, -0.0201, -0.0312, -0.0222, -0.0154, -0.0265, -0.0301}};
const std::vector<std::vector<double>> kApart{
    {-0.0412, -0.0350, -0.0521, -0.0298, -0.0467},
    {-0.0301, -0.0188, -0.0352, -0.0297, -0.0361, -0.0270, -0.0338},
    {-0.0189, -0.0343, -0.0101, -0.0412}};

TEST(SizeTrend, of_seeds_at_all_sizes_is_the_slope_of_a_mixed_model) {
  const PairedDifference slope = size_trend(sizes_of(kEverywhere, true), Trend::slope);
  EXPECT_NEAR(slope.difference.mean, 0.0165908958429, 1e-12);
  EXPECT_NEAR(slope.error, 0.00404175730811, 1e-12) << "MixedLM of statsmodels, REML";
  EXPECT_NEAR(slope.degrees, 7, 1e-9);
  EXPECT_EQ(slope.pairs, 24);
}

TEST(SizeTrend, of_other_seeds_at_each_size_has_the_error_of_weighted_least_squares) {
  const PairedDifference slope = size_trend(sizes_of(kApart, false), Trend::slope);
  EXPECT_NEAR(slope.difference.mean, 0.0152990256229, 1e-12);
  EXPECT_NEAR(slope.error, 0.00777610751824, 1e-13);
}

TEST(SizeTrend, of_the_mean_over_two_sizes_is_tested_as_welch_does) {
  const PairedDifference mean = size_trend(sizes_of({kApart[0], kApart[1]}, false), Trend::mean);
  EXPECT_NEAR(mean.difference.mean, -0.03553, 1e-15);
  EXPECT_NEAR(mean.error, 0.00228767557224, 1e-13);
  EXPECT_NEAR(mean.degrees, 6.52443680329, 1e-10);
  EXPECT_NEAR(mean.p, 2.13800002775e-06, 1e-15);
}

TEST(SizeTrend, at_one_size_is_a_paired_t_test) {
  const std::vector<double> zeros(kApart[0].size());
  const PairedDifference expected = paired_difference(kApart[0], zeros);
  const PairedDifference mean = size_trend(sizes_of({kApart[0]}, false), Trend::mean);
  EXPECT_NEAR(mean.difference.mean, expected.difference.mean, 1e-15);
  EXPECT_NEAR(mean.error, expected.error, 1e-15);
  EXPECT_NEAR(mean.p, expected.p, 1e-12);
}

TEST(SizeTrend, without_a_spread_has_no_error) {
  EXPECT_TRUE(std::isnan(size_trend(sizes_of({{0.1, 0.2}, {0.1}}, false), Trend::mean).error))
      << "one seed at a size";
  const PairedDifference equal = size_trend(sizes_of({{0.1, 0.1}, {0.3, 0.3}}, true), Trend::slope);
  EXPECT_TRUE(std::isnan(equal.error) && std::isnan(equal.p));
  EXPECT_NEAR(equal.difference.mean, 0.2 / std::log10(kSizes[1] / kSizes[0]), 1e-12);
}

TEST(SizeTrend, of_a_seed_that_is_alone_in_its_sizes_takes_the_variance_of_these) {
  std::vector<SizeGaps> sizes = sizes_of({kApart[0], kApart[1]}, false);
  sizes[1].seeds[0] = sizes[0].seeds[0];  // one seed of both, four and six of one
  const PairedDifference mean = size_trend(sizes, Trend::mean);
  EXPECT_GT(mean.error, 0.0015);
  EXPECT_LT(mean.error, 0.0035);
  EXPECT_TRUE(mean.degrees > 2 && mean.degrees < 11) << mean.degrees;
}

TEST(SizeTrend, weights_add_up_to_the_estimate) {
  for (const Trend trend : {Trend::mean, Trend::slope}) {
    const std::vector<SizeGaps> sizes = sizes_of(kApart, false);
    const std::vector<double> weights = gap_weights(sizes, trend);
    double sum = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      sum += weights[i] * std::accumulate(sizes[i].gaps.begin(), sizes[i].gaps.end(), 0.0);
    }
    EXPECT_NEAR(sum, size_trend(sizes, trend).difference.mean, 1e-15);
  }
}

/// How often intervals of 95 % hold the true slope or mean: 16, 24 and 6 seeds, deviations that
/// rise with size, and `of_seed` as the deviation that a seed has at all sizes.
double coverage(Trend trend, double of_seed, bool shared) {
  constexpr int kTrials = 4000, kSeeds[] = {16, 24, 6};
  constexpr double kDeviations[] = {0.010, 0.012, 0.015}, kSlope = 0.01;
  const RandomStream noise(7, "sizes");
  std::uint64_t index = 0;
  int held = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> seeds(24);
    for (double& each : seeds) each = of_seed * noise.normal(index++);
    std::vector<std::vector<double>> gaps(3);
    double mean = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const double expected = kSlope * std::log10(kSizes[i]);
      mean += expected / 3;
      for (int j = 0; j < kSeeds[i]; ++j) {
        const double own = shared ? seeds[static_cast<std::size_t>(j)] : 0;
        gaps[i].push_back(expected + own + kDeviations[i] * noise.normal(index++));
      }
    }
    const Interval found = size_trend(sizes_of(gaps, shared), trend).difference;
    const double truth = trend == Trend::slope ? kSlope : mean;
    held += found.low() <= truth && truth <= found.high() ? 1 : 0;
  }
  return static_cast<double>(held) / kTrials;
}

TEST(SizeTrend, has_intervals_that_hold_the_truth_as_often_as_they_say) {
  // Binomial: a standard deviation of 0.0034.
  for (const Trend trend : {Trend::slope, Trend::mean}) {
    EXPECT_NEAR(coverage(trend, 0, false), 0.95, 0.01);
    EXPECT_NEAR(coverage(trend, 0.006, true), 0.95, 0.01);
    EXPECT_NEAR(coverage(trend, 0, true), 0.95, 0.01);
  }
}

}  // namespace
}  // namespace difftape::stats
