#include "train/stats/interval.h"

#include <rapidcheck/gtest.h>

#include <numeric>

#include "core/random.h"
#include "tests/support/test.h"

namespace difftape::stats {
namespace {

TEST(Interval, quantiles_of_student_t_match_published_tables) {
  EXPECT_NEAR(student_t_quantile(0.975, 1), 12.7062, 5e-5);
  EXPECT_NEAR(student_t_quantile(0.975, 2), 4.3027, 5e-5);
  EXPECT_NEAR(student_t_quantile(0.975, 4), 2.7764, 5e-5);
  EXPECT_NEAR(student_t_quantile(0.975, 30), 2.0423, 5e-5);
  EXPECT_NEAR(student_t_quantile(0.95, 10), 1.8125, 5e-5);
  EXPECT_NEAR(student_t_quantile(0.025, 4), -2.7764, 5e-5);
}

TEST(Interval, is_the_mean_with_t_times_its_standard_error) {
  const std::array values{1.0, 2.0, 3.0, 4.0, 5.0};
  const Interval interval = mean_interval(values);
  EXPECT_DOUBLE_EQ(interval.mean, 3);
  // Sum of squares 10, variance 10 / 4, standard error sqrt(2.5 / 5).
  EXPECT_NEAR(interval.half_width, 2.776445 * std::sqrt(0.5), 1e-6);
  EXPECT_DOUBLE_EQ(interval.low(), interval.mean - interval.half_width);
  EXPECT_DOUBLE_EQ(interval.high(), interval.mean + interval.half_width);
}

TEST(Interval, has_zero_width_for_equal_values_and_unknown_width_for_one_or_none) {
  const std::array equal{2.5, 2.5, 2.5};
  const std::array one{7.0};
  EXPECT_EQ(mean_interval(equal).half_width, 0);
  EXPECT_EQ(mean_interval(one).mean, 7);
  EXPECT_TRUE(std::isnan(mean_interval(one).half_width));
  EXPECT_TRUE(std::isnan(mean_interval({}).mean));
}

TEST(Interval, propagates_non_finite_values) {
  const std::array infinite{1.0, std::numeric_limits<double>::infinity()}, nan{1.0, std::nan("")};
  EXPECT_EQ(mean_interval(infinite).mean, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(mean_interval(infinite).half_width));
  EXPECT_TRUE(std::isnan(mean_interval(nan).mean));
}

// Reference values from mpmath, computed by tests/train/stats/reference.py.

TEST(StudentT, has_the_p_values_of_its_incomplete_beta_function) {
  EXPECT_NEAR(student_t_two_sided(2, 3), 0.139325968559, 1e-12);
  EXPECT_NEAR(student_t_two_sided(-2.5, 7), 0.0409922185858, 1e-12);
  EXPECT_NEAR(student_t_two_sided(30, 2), 0.00110926268196, 1e-13);
  EXPECT_EQ(student_t_two_sided(0, 4), 1);
  EXPECT_EQ(student_t_two_sided(std::numeric_limits<double>::infinity(), 4), 0);
  EXPECT_TRUE(std::isnan(student_t_two_sided(kNaN, 4)));
}

TEST(PairedDifference, reproduces_students_own_example) {
  // "Student" (1908), hours of sleep gained by two drugs; R's t.test(paired = TRUE) prints
  // p-value = 0.002833 and -2.4598858 -0.7001142.
  const std::array a{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0},
      b{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
  const PairedDifference sleep = paired_difference(a, b);
  EXPECT_EQ(sleep.pairs, 10);
  EXPECT_EQ(sleep.degrees, 9);
  EXPECT_NEAR(sleep.difference.mean, -1.58, 1e-12);
  EXPECT_NEAR(sleep.difference.half_width, 0.879885763277, 1e-11);
  EXPECT_NEAR(sleep.difference.low(), -2.4598858, 5e-8);
  EXPECT_NEAR(sleep.p, 0.00283289019738, 1e-13);
}

TEST(PairedDifference, of_three_seeds_has_a_wide_interval) {
  const PairedDifference result =
      paired_difference(std::array{2.31, 2.305, 2.32}, std::array{2.33, 2.34, 2.335});
  EXPECT_NEAR(result.difference.mean, -0.0233333333333, 1e-12);
  EXPECT_NEAR(result.difference.half_width, 0.0258557250627, 1e-11);
  EXPECT_NEAR(result.p, 0.0603815227004, 1e-11);
}

TEST(PairedDifference, has_no_interval_for_one_pair_and_no_mean_for_none) {
  const PairedDifference one = paired_difference(std::array{2.0}, std::array{3.0});
  EXPECT_EQ(one.difference.mean, -1);
  EXPECT_TRUE(std::isnan(one.difference.half_width));
  EXPECT_TRUE(std::isnan(one.p));
  EXPECT_TRUE(std::isnan(paired_difference({}, {}).difference.mean));
}

TEST(PairedDifference, of_equal_differences_is_judged_by_their_signs) {
  const std::array a{1.0, 5.0, 9.0}, b{0.0, 4.0, 8.0};
  EXPECT_EQ(paired_difference(a, b).p, 0.25) << "three heads in a row, or three tails";
  EXPECT_EQ(paired_difference(a, b).difference.half_width, 0);
  EXPECT_EQ(paired_difference(a, a).p, 1);
}

TEST(PairedDifference, treats_differences_that_differ_by_rounding_as_equal) {
  // Spike scores: 0.4 - 0.1 and 0.3 - 0.0 are two numbers in floating point.
  const auto scores = [](std::array<int, 3> spikes) {
    std::array<double, 3> result;
    for (std::size_t i = 0; i < 3; ++i) result[i] = 100.0 * spikes[i] / 1000;
    return result;
  };
  const auto a = scores({3, 4, 3}), b = scores({0, 1, 0});
  ASSERT_NE(a[0] - b[0], a[1] - b[1]);
  const PairedDifference result = paired_difference(b, a);
  EXPECT_NEAR(result.difference.mean, -0.3, 1e-12);
  EXPECT_EQ(result.difference.half_width, 0);
  EXPECT_EQ(result.p, 0.25);
  const PairedDifference none = paired_difference(std::array{0.1 + 0.2, 0.7}, std::array{0.3, 0.7});
  EXPECT_EQ(none.difference.mean, 0);
  EXPECT_EQ(none.p, 1);
  EXPECT_LT(paired_difference(std::array{1.0, 1.1, 1.2}, std::array{0.0, 0.1 - 1e-6, 0.2}).p, 1e-10)
      << "a millionth is a difference";
}

TEST(PairedDifference, propagates_nan) {
  const PairedDifference result = paired_difference(std::array{1.0, kNaN}, std::array{1.0, 2.0});
  EXPECT_TRUE(std::isnan(result.difference.mean));
  EXPECT_TRUE(std::isnan(result.p));
}

TEST(PairedDifference, without_an_effect_has_p_below_0_05_once_in_twenty) {
  const RandomStream noise(3, "paired");
  int below = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::array<double, 4> a, b;
    for (std::size_t i = 0; i < 4; ++i) {
      const auto index = static_cast<std::uint64_t>(trial) * 8 + 2 * i;
      a[i] = noise.normal(index);
      b[i] = noise.normal(index + 1);
    }
    below += paired_difference(a, b).p < 0.05 ? 1 : 0;
  }
  // Binomial: 200 with a standard deviation of 14.
  EXPECT_NEAR(below, kTrials / 20, 50);
}

TEST(ErrorParts, add_up_with_the_degrees_of_welch_and_satterthwaite) {
  // Two means with variances 4 and 9, and 5 and 11 degrees of freedom.
  const ErrorPart sum = sum_of_errors(std::array{ErrorPart{4, 5}, ErrorPart{9, 11}});
  EXPECT_DOUBLE_EQ(sum.variance, 13);
  EXPECT_DOUBLE_EQ(sum.degrees, 169 / (16.0 / 5 + 81.0 / 11));
  const ErrorPart one = sum_of_errors(std::array{ErrorPart{4, 5}, ErrorPart{0, 1}});
  EXPECT_EQ(one.variance, 4);
  EXPECT_EQ(one.degrees, 5) << "a part without variance has no influence";
}

constexpr double kSizes[] = {67000, 230000, 670000};

/// Differences at several sizes; with `shared`, all sizes have the same seeds.
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

TEST(SizeTrend, with_the_same_seeds_at_all_sizes_is_the_slope_of_a_mixed_model) {
  const PairedDifference slope = size_trend(sizes_of(kEverywhere, true), Trend::slope);
  EXPECT_NEAR(slope.difference.mean, 0.0165908958429, 1e-12);
  EXPECT_NEAR(slope.error, 0.00404175730811, 1e-12) << "MixedLM of statsmodels, REML";
  EXPECT_NEAR(slope.degrees, 7, 1e-9);
  EXPECT_EQ(slope.pairs, 24);
}

TEST(SizeTrend, with_other_seeds_at_each_size_has_the_error_of_weighted_least_squares) {
  const PairedDifference slope = size_trend(sizes_of(kApart, false), Trend::slope);
  EXPECT_NEAR(slope.difference.mean, 0.0152990256229, 1e-12);
  EXPECT_NEAR(slope.error, 0.00777610751824, 1e-13);
}

TEST(SizeTrend, mean_over_two_sizes_equals_welchs_test) {
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

/// Returns the squared standard error of a mean, with its degrees of freedom.
ErrorPart mean_error(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {squares / (n - 1) / n, n - 1};
}

TEST(SizeTrend, gives_a_seed_that_is_alone_in_its_sizes_their_variance) {
  std::vector<SizeGaps> sizes = sizes_of({kApart[0], kApart[1]}, false);
  sizes[1].seeds[0] = sizes[0].seeds[0];  // one seed at both sizes, four and six at one
  const PairedDifference mean = size_trend(sizes, Trend::mean);
  ErrorPart alone{0, static_cast<double>(kApart[0].size() - 1)};  // of the smaller sample
  std::vector<ErrorPart> parts;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::vector<double>& gaps = sizes[i].gaps;
    const auto n = static_cast<double>(gaps.size());
    alone.variance += mean_error(gaps).variance / n / 4;
    const ErrorPart others = mean_error(std::span(gaps).subspan(1));
    const double share = (n - 1) / n / 2;
    parts.push_back({share * share * others.variance, others.degrees});
  }
  parts.push_back(alone);
  const ErrorPart expected = sum_of_errors(parts);
  EXPECT_NEAR(mean.error, std::sqrt(expected.variance), 1e-15);
  EXPECT_NEAR(mean.degrees, expected.degrees, 1e-9);
}

TEST(SizeTrend, weights_add_up_to_the_estimate) {
  for (const Trend trend : {Trend::mean, Trend::slope}) {
    const std::vector<SizeGaps> sizes = sizes_of(kApart, false);
    const std::vector<double> weights = gap_weights(sizes, trend);
    double sum = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i)
      sum += weights[i] * std::accumulate(sizes[i].gaps.begin(), sizes[i].gaps.end(), 0.0);
    EXPECT_NEAR(sum, size_trend(sizes, trend).difference.mean, 1e-15);
  }
}

/// Returns how often 95 % intervals contain the true slope or mean, for 16, 24 and 6 seeds and
/// deviations that rise with size. `of_seed` is the deviation of a seed at all sizes.
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

TEST(SizeTrend, intervals_contain_the_truth_at_their_nominal_rate) {
  // Binomial: a standard deviation of 0.0034.
  for (const Trend trend : {Trend::slope, Trend::mean}) {
    EXPECT_NEAR(coverage(trend, 0, false), 0.95, 0.01);
    EXPECT_NEAR(coverage(trend, 0.006, true), 0.95, 0.01);
    EXPECT_NEAR(coverage(trend, 0, true), 0.95, 0.01);
  }
}

}  // namespace
}  // namespace difftape::stats
