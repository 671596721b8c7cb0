#include "tests/support/test.h"
#include "train/run/diagnostics/map_scan.h"

namespace difftape::run {
namespace {

using testing::IsNan;

TEST(Spread, is_mean_population_deviation_and_range) {
  const Spread spread = spread_of(std::vector<double>{1, 2, 3, 6});
  EXPECT_DOUBLE_EQ(spread.mean, 3);
  EXPECT_DOUBLE_EQ(spread.std, std::sqrt(14.0 / 4));
  EXPECT_DOUBLE_EQ(spread.min, 1);
  EXPECT_DOUBLE_EQ(spread.max, 6);
}

TEST(Spread, is_nan_without_values_or_with_a_nan_and_keeps_an_infinity) {
  for (const std::vector<double>& values :
       {std::vector<double>{}, std::vector<double>{1, kNaN, 2}, std::vector<double>{kNaN}}) {
    const Spread spread = spread_of(values);
    EXPECT_THAT((std::vector{spread.mean, spread.std, spread.min, spread.max}),
                testing::Each(IsNan()));
  }
  const Spread spread = spread_of(std::vector<double>{1, kInfinity});
  EXPECT_EQ(spread.mean, kInfinity);
  EXPECT_EQ(spread.min, 1);
  EXPECT_EQ(spread.max, kInfinity);
}

TEST(Kurtosis, is_1_for_equal_features_and_their_number_if_only_one_is_not_0) {
  EXPECT_DOUBLE_EQ(kurtosis(Tensor::full({2, 3, 8}, real(-0.5))), 1);
  Tensor one = Tensor::zeros({2, 3, 8});
  for (Index i = 0; i < 6; ++i) one.row(i)[5] = real(i + 1);
  EXPECT_DOUBLE_EQ(kurtosis(one), 8);
}

TEST(Kurtosis, of_two_features_follows_the_formula_and_does_not_depend_on_scale) {
  // Mean squares 2.5 and 10: (6.25 + 100) / 2 / 6.25^2.
  const Tensor x = Tensor::from({2, 2}, std::vector<real>{1, 2, 2, 4});
  EXPECT_DOUBLE_EQ(kurtosis(x), 1.36);
  EXPECT_DOUBLE_EQ(kurtosis(Tensor::from({2, 2}, std::vector<real>{4, 8, 8, 16})), 1.36);
}

TEST(Kurtosis, is_nan_for_nan_infinity_or_zeros) {
  EXPECT_TRUE(std::isnan(kurtosis(Tensor::full({1, 2}, static_cast<real>(kNaN)))));
  EXPECT_TRUE(std::isnan(
      kurtosis(Tensor::from({1, 2}, std::vector<real>{1, static_cast<real>(kInfinity)}))));
  EXPECT_TRUE(std::isnan(kurtosis(Tensor::zeros({1, 2}))));
}

TEST(Rms, is_the_magnitude_of_equal_elements_and_nan_with_a_nan) {
  EXPECT_DOUBLE_EQ(rms(Tensor::full({2, 3, 8}, real(-0.5))), 0.5);
  EXPECT_DOUBLE_EQ(rms(Tensor::from({1, 4}, std::vector<real>{1, -1, 7, 7})), 5);
  EXPECT_TRUE(std::isnan(rms(Tensor::full({1, 2}, static_cast<real>(kNaN)))));
}

}  // namespace
}  // namespace difftape::run
