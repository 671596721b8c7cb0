#include "train/app/analyze/snr.h"

#include "tests/support/threads.h"

namespace difftape::app {
namespace {

/// One amplitude and correlation.
SnrPoint measure(SnrRequest request, double noise, double correlation) {
  request.noise = {noise};
  request.correlation = {correlation};
  return measure_snr(request).points.at(0);
}

SnrRequest small() {
  SnrRequest request;
  request.needle.tokens = 64;
  request.needle.signal = 2;
  request.trials = 20;
  return request;
}

TEST(SignalToNoise, is_the_needles_weight_over_the_mean_weight_elsewhere_whatever_the_signs) {
  Eigen::ArrayXd weights(4);
  weights << -0.6, 0.1, -0.2, 0.3;
  EXPECT_DOUBLE_EQ(signal_to_noise(weights), 0.6 / 0.2);
  weights << 1, 0, 0, 0;
  EXPECT_EQ(signal_to_noise(weights), kInfinity);
  weights.setZero();
  EXPECT_TRUE(std::isnan(signal_to_noise(weights)));
}

TEST(Snr, without_noise_is_that_of_the_known_weights) {
  SnrRequest request = small();
  request.needle.second_signal = 0.5;
  request.lambdas = 5;
  const SnrPoint point = measure(request, 0, 0.3);
  const double others = 63, first = std::exp(2), second = std::exp(0.5);
  for (size_t i = 0; i < 5; ++i) {
    const double lambda = 0.25 * static_cast<double>(i), z1 = first + others, z2 = second + others;
    const double expected =
        std::abs(first / z1 - lambda * second / z2) / std::abs(1 / z1 - lambda / z2);
    EXPECT_NEAR(point.snr[i].value / expected, 1, 1e-12) << lambda;
    EXPECT_NEAR(point.snr[i].low / expected, 1, 1e-12) << "equal trials leave no doubt";
  }
  EXPECT_NEAR(point.snr[0].value, std::exp(2), 1e-12) << "softmax: e^signal";
}

TEST(Snr, at_lambda_0_is_that_of_softmax) {
  const SnrRequest request = small();
  const SnrPoint point = measure(request, 1.5, 0.4);
  double logs = 0;
  for (Index trial = 0; trial < request.trials; ++trial) {
    logs += std::log(signal_to_noise(draw_maps(request.needle, 1.5, 0.4, 1, trial).first));
  }
  EXPECT_NEAR(point.snr[0].value, std::exp(logs / 20), 1e-12);
  EXPECT_LT(point.snr[0].low, point.snr[0].value);
  EXPECT_GT(point.snr[0].high, point.snr[0].value);
  EXPECT_EQ(point.gain[0].value, 1);
  EXPECT_EQ(point.gain[0].low, 1);
  EXPECT_EQ(point.snr[0].value, measure(request, 1.5, 1).snr[0].value)
      << "the first map knows nothing of the second";
}

TEST(Snr, of_softmax_is_the_signal_less_half_the_variance_in_the_limit_of_many_tokens) {
  SnrRequest request;
  request.needle.tokens = 8192;
  request.needle.signal = 3;
  request.trials = 50;
  request.lambdas = 2;
  // The mean of e^(noise n) is e^(noise^2 / 2).
  EXPECT_NEAR(std::log(measure(request, 0.5, 0).snr[0].value), 3 - 0.125, 5e-3);
  EXPECT_NEAR(std::log(measure(request, 1, 0).snr[0].value), 3 - 0.5, 1e-2);
}

TEST(Snr, of_a_full_subtraction_of_maps_with_equal_noise_counts_the_other_positions) {
  // Everywhere but at the needle the second map is a multiple of the first, and weights sum to 0.
  for (const double noise : {0.5, 2.0}) {
    EXPECT_NEAR(measure(small(), noise, 1).snr.back().value, 63, 1e-9);
    EXPECT_LT(measure(small(), noise, 0.9).snr.back().value, 62);
  }
}

TEST(Snr, gains_more_the_more_of_the_noise_the_maps_share) {
  double before = 1;
  for (const double correlation : {0.0, 0.5, 0.9}) {
    const SnrPoint point = measure(small(), 0.7, correlation);
    EXPECT_GT(point.gain[point.best].low, before) << correlation;
    before = point.gain[point.best].high;
    for (const stats::Ratio& ratio : point.snr) EXPECT_LE(ratio.value, point.snr[point.best].value);
  }
}

TEST(Snr, draws_correlated_normal_noise_of_the_given_amplitude) {
  Needle needle;
  needle.tokens = 20001;
  const TwoMaps maps = draw_maps(needle, 0.8, 0.6, 5, 3);
  Eigen::ArrayXd first = maps.first.tail(20000).log(), second = maps.second.tail(20000).log();
  first -= first.mean();
  second -= second.mean();
  const double a = std::sqrt(first.square().mean()), b = std::sqrt(second.square().mean());
  EXPECT_NEAR(a, 0.8, 0.02);
  EXPECT_NEAR(b, 0.8, 0.02);
  EXPECT_NEAR((first * second).mean() / (a * b), 0.6, 0.02);
  EXPECT_NEAR(maps.first.sum(), 1, 1e-12);
  EXPECT_NEAR(maps.second.sum(), 1, 1e-12);
}

TEST(Snr, repeats_with_the_seed_bit_for_bit_on_any_number_of_threads) {
  SnrRequest request = small();
  const double one = measure(request, 1, 0.5).snr[3].value;
  for (const int count : {1, 3}) {
    const test::Threads threads(count);
    EXPECT_EQ(measure(request, 1, 0.5).snr[3].value, one);
  }
  request.seed = 2;
  EXPECT_NE(measure(request, 1, 0.5).snr[3].value, one);
}

TEST(Crossover, lies_between_the_amplitudes_where_the_ratio_falls_below_for_good) {
  const std::vector<double> noise{1, 2, 4};
  EXPECT_NEAR(find_crossover(noise, std::vector{std::exp(2), std::exp(1), std::exp(-3)}, 1), 2.5,
              1e-12);
  EXPECT_NEAR(find_crossover(noise, std::vector{10.0, 0.1, 0.1}, 1), 1.5, 1e-12);
  EXPECT_NEAR(find_crossover(noise, std::vector{0.1, 10.0, 0.1}, 1), 3, 1e-12)
      << "it came back above";
  EXPECT_NEAR(find_crossover(noise, std::vector{30.0, 3.0, 3.0 / 10}, 3), 2, 1e-12)
      << "at the threshold is not below it";
  EXPECT_EQ(find_crossover(noise, std::vector{3.0, 2.0, 1.0}, 1), kInfinity);
  EXPECT_EQ(find_crossover(noise, std::vector{0.3, 0.2, 0.1}, 1), -kInfinity);
}

TEST(Crossover, of_softmax_is_near_the_root_of_twice_the_signal) {
  SnrRequest request;
  request.needle.tokens = 8192;
  request.needle.signal = 0.5;
  request.noise = {0.5, 0.9, 1.1, 1.5};
  request.correlation = {0, 1};
  request.trials = 20;
  const SnrResult result = measure_snr(request);
  ASSERT_EQ(result.crossovers.size(), 2u);
  EXPECT_NEAR(result.crossovers[0].softmax, 1, 0.02);
  EXPECT_EQ(result.crossovers[1].softmax, result.crossovers[0].softmax);
  EXPECT_GT(result.crossovers[0].differential, result.crossovers[0].softmax);
  EXPECT_EQ(result.crossovers[1].differential, kInfinity);
}

}  // namespace
}  // namespace difftape::app
