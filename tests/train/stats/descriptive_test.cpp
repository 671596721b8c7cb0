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

}  // namespace
}  // namespace difftape::stats
