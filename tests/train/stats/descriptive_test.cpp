#include "train/stats/descriptive.h"

#include "tests/support/test.h"

namespace difftape::stats {
namespace {

TEST(Quantile, interpolates_between_order_statistics) {
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 1), 4);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0), 1);
  EXPECT_DOUBLE_EQ(quantile({5}, 0.99), 5);
  EXPECT_EQ(quantile({1, kInfinity, kInfinity}, 0.75), kInfinity);
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
}

TEST(Quantile, equals_numpys) {
  const std::vector<double> values{3.1, -2.0, 7.5, 0.25, 4.0};  // reference.py
  EXPECT_DOUBLE_EQ(quantile(values, 0.025), -1.775);
  EXPECT_DOUBLE_EQ(quantile(values, 0.1), -1.1);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 3.1);
  EXPECT_DOUBLE_EQ(quantile(values, 0.975), 7.15);
}

TEST(Variance, is_the_population_variance_and_nan_without_values) {
  const std::array values{1.0, 2.0, 3.0, 4.0};
  EXPECT_DOUBLE_EQ(mean(values), 2.5);
  EXPECT_DOUBLE_EQ(variance(values), 1.25);
  EXPECT_TRUE(std::isnan(mean({})));
  EXPECT_TRUE(std::isnan(variance({})));
}

TEST(Variation, is_the_deviation_over_the_median) {
  EXPECT_DOUBLE_EQ(variation(std::array{1.0, 3.0}), 0.5);
  EXPECT_DOUBLE_EQ(variation(std::array{1.0, 2.0, 6.0}), std::sqrt(14.0 / 3) / 2);  // not the mean
  EXPECT_TRUE(std::isnan(variation(std::array{5.0})));
  EXPECT_TRUE(std::isnan(variation(std::array{0.0, -1.0})));
  EXPECT_TRUE(std::isnan(variation({})));
}

TEST(GrowthExponent, is_the_slope_of_logarithms) {
  const std::array steps{10.0, 20.0, 40.0, 50.0}, norms{1.0, 1.7, 2.9, 3.1};
  EXPECT_NEAR(growth_exponent(steps, norms), 0.723044374029035, 1e-13);  // reference.py
  std::vector<double> squares;
  for (const double step : steps) squares.push_back(3 * step * step);
  EXPECT_NEAR(growth_exponent(steps, squares), 2, 1e-13);
}

TEST(GrowthExponent, skips_values_without_a_logarithm_and_needs_two_steps) {
  const std::array x{1.0, 2.0, 3.0, 4.0, 8.0}, y{1.0, kNaN, 0.0, kInfinity, 2.0};
  EXPECT_NEAR(growth_exponent(x, y), 1.0 / 3, 1e-14);
  EXPECT_TRUE(std::isnan(growth_exponent({}, {})));
  EXPECT_TRUE(std::isnan(growth_exponent(std::array{5.0, 5.0}, std::array{1.0, 2.0})));
}

TEST(Correlation, is_pearsons_for_any_scales) {
  const std::vector<double> x{1, 2, 3, 4}, y{10, 30, 20, 40};
  EXPECT_DOUBLE_EQ(correlation(x, y), 0.8);
  EXPECT_DOUBLE_EQ(correlation(y, x), 0.8);
  EXPECT_TRUE(std::isnan(correlation(x, std::vector<double>(4, 1.0))));
}

double grad_norm_growth(const std::vector<double>& norms) { return late_growth(numbered(norms)); }
double grad_norm_late_variance(const std::vector<double>& norms) {
  return late_variance(numbered(norms));
}

/// Returns the norms 3 step^exponent of the steps 1 to n.
std::vector<double> power(std::size_t n, double exponent) {
  std::vector<double> norms;
  for (std::size_t step = 1; step <= n; ++step)
    norms.push_back(3 * std::pow(static_cast<double>(step), exponent));
  return norms;
}

TEST(LateGrowth, is_the_exponent_of_a_power_of_the_step) {
  for (const double exponent : {-0.5, 0.0, 0.25, 2.0})
    for (const std::size_t steps : {3u, 10u, 101u, 2000u})
      EXPECT_NEAR(grad_norm_growth(power(steps, exponent)), exponent, 1e-9) << steps;
}

TEST(LateGrowth, uses_the_second_half_of_the_steps_only) {
  std::vector<double> norms = power(101, 1.5);
  for (std::size_t step = 1; 2 * step <= 101; ++step) norms[step - 1] = 1e6;
  EXPECT_NEAR(grad_norm_growth(norms), 1.5, 1e-9);
  norms[50] = 1e6;  // step 51 is the first that counts
  EXPECT_LT(grad_norm_growth(norms), 1);
}

TEST(LateGrowth, of_three_points_is_the_least_squares_slope) {
  // Steps 3, 4, 5 of 5 with norms e, e^2, e^2 against log(step).
  const std::vector<double> norms{9, 9, std::exp(1), std::exp(2), std::exp(2)};
  const double x[] = {std::log(3), std::log(4), std::log(5)}, y[] = {1, 2, 2};
  const double mean = (x[0] + x[1] + x[2]) / 3;
  double above = 0, below = 0;
  for (int i = 0; i < 3; ++i) {
    above += (x[i] - mean) * y[i];
    below += (x[i] - mean) * (x[i] - mean);
  }
  EXPECT_NEAR(grad_norm_growth(norms), above / below, 1e-12);
}

TEST(LateGrowth, is_nan_without_two_positive_finite_norms) {
  EXPECT_TRUE(std::isnan(grad_norm_growth({})));
  EXPECT_TRUE(std::isnan(grad_norm_growth({1, 2})));
  EXPECT_TRUE(std::isnan(grad_norm_growth({1, 2, kNaN, 0, kInfinity, 3})));
}

TEST(LateGrowth, skips_non_finite_values) {
  std::vector<double> norms = power(40, 0.75);
  norms[30] = kNaN;
  norms[39] = kInfinity;
  EXPECT_NEAR(grad_norm_growth(norms), 0.75, 1e-9);
}

TEST(LateVariance, is_the_population_variance_of_the_last_quarter) {
  EXPECT_DOUBLE_EQ(grad_norm_late_variance({9, 9, 9, 9, 9, 1, 2, 6}), 4);
  EXPECT_DOUBLE_EQ(grad_norm_late_variance({9, 9, 9, 9, 9, 9, 1, 2, 6}), 14.0 / 3);
  EXPECT_DOUBLE_EQ(grad_norm_late_variance({5}), 0);
  EXPECT_DOUBLE_EQ(grad_norm_late_variance({9, 9, 9, 9, 2, 6, 4, kInfinity}), 0);
  EXPECT_TRUE(std::isnan(grad_norm_late_variance({})));
}

TEST(Late, selects_the_last_fraction_of_the_steps_for_any_logging_interval) {
  const Series all = numbered(std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_EQ(late(all, kLastQuarter).value, (std::vector<double>{7, 8, 9}));
  EXPECT_EQ(late(all, kSecondHalf).value, (std::vector<double>{5, 6, 7, 8, 9}));
  EXPECT_EQ(late({{10, 20, 30, 40}, {1, 2, 3, 4}}, kLastQuarter).step, std::vector<double>{40});
  EXPECT_TRUE(late({}, kLastQuarter).step.empty());
}
}  // namespace
}  // namespace difftape::stats
