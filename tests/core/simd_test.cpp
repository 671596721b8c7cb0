#include "core/simd_functions.h"
#include "core/softcap.h"
#include "tests/support/test.h"

namespace difftape {
namespace {

/// Two units of the last digit.
constexpr double kExpTolerance = sizeof(real) == 4 ? 1.2e-7 : 4.4e-16;

TEST(Simd, exp_agrees_with_the_standard_library_over_its_whole_range) {
  double worst = 0;
  const double lowest = std::log(static_cast<double>(std::numeric_limits<real>::min()));
  constexpr int kSteps = 200000;
  for (int i = 0; i <= kSteps; ++i) {
    const auto x = static_cast<real>(1 + (lowest + 0.01 - 1) * i / kSteps);
    const double expected = std::exp(static_cast<double>(x));
    const double got = static_cast<double>(exp_simd(x)[0]);
    worst = std::max(worst, std::abs(got - expected) / expected);
  }
  EXPECT_LE(worst, kExpTolerance);
  EXPECT_GT(worst, 0);
}

TEST(Simd, exp_has_exact_special_values) {
  constexpr real kLargest = std::numeric_limits<real>::infinity();
  EXPECT_EQ(exp_simd(0)[0], 1);
  EXPECT_EQ(exp_simd(-kLargest)[1], 0);
  EXPECT_EQ(exp_simd(real(-1e4))[2], 0);
  EXPECT_EQ(exp_simd(std::numeric_limits<real>::lowest())[0], 0);
  for (real x = detail::kExp.lowest - 1; x > -4000; x -= real(0.5))
    ASSERT_EQ(exp_simd(x)[0], 0) << x;
  EXPECT_TRUE(std::isnan(exp_simd(std::numeric_limits<real>::quiet_NaN())[3]));
}

TEST(Simd, tanh_agrees_with_the_standard_library_near_0_and_far_from_it) {
  double worst = 0;
  constexpr int kSteps = 20000;
  for (int i = 1; i <= kSteps; ++i) {
    for (const double reach : {1e-3, 0.2, 1.0, 25.0}) {
      const auto x = static_cast<real>(reach * i / kSteps);
      const double expected = std::tanh(static_cast<double>(x));
      const double got = static_cast<double>(tanh_simd(x)[0]);
      worst = std::max(worst, std::abs(got - expected) / expected);
      ASSERT_EQ(tanh_simd(-x)[0], -tanh_simd(x)[0]);
    }
  }
  EXPECT_LE(worst, 3 * kExpTolerance);
  EXPECT_GT(worst, 0);
}

TEST(Simd, tanh_has_exact_special_values) {
  constexpr real kLargest = std::numeric_limits<real>::infinity();
  EXPECT_EQ(tanh_simd(0)[0], 0);
  EXPECT_EQ(tanh_simd(kLargest)[1], 1);
  EXPECT_EQ(tanh_simd(-kLargest)[2], -1);
  EXPECT_EQ(tanh_simd(real(-1e4))[3], -1);
  EXPECT_TRUE(std::isnan(tanh_simd(std::numeric_limits<real>::quiet_NaN())[4]));
}

TEST(Softcap, gives_any_number_of_values_and_their_slopes) {
  for (const Index n : {Index{1}, kSimdWidth - 1, kSimdWidth, 3 * kSimdWidth + 5}) {
    std::vector<real> x, slopes(static_cast<size_t>(n) + 1, 7);
    for (Index i = 0; i <= n; ++i) x.push_back(static_cast<real>(i - n / 2));
    const std::vector<real> before = x;
    softcap(x.data(), n, 3, slopes.data());
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
      const double t = std::tanh(static_cast<double>(before[i]) / 3);
      EXPECT_NEAR(x[i], 3 * t, 20 * kExpTolerance);
      EXPECT_NEAR(slopes[i], 1 - t * t, 20 * kExpTolerance);
    }
    EXPECT_EQ(x.back(), before.back()) << "what lies beyond stays";
    EXPECT_EQ(slopes.back(), 7);
  }
}

TEST(Simd, lanes_are_independent) {
  real numbers[kSimdWidth], results[kSimdWidth];
  for (Index i = 0; i < kSimdWidth; ++i) numbers[i] = -static_cast<real>(i);
  store(exp_simd(load(numbers)), results);
  for (Index i = 0; i < kSimdWidth; ++i) {
    EXPECT_NEAR(results[i], std::exp(-static_cast<double>(i)), kExpTolerance) << i;
  }
}

TEST(Simd, fma_rounds_once_and_a_zero_keeps_its_sign) {
  constexpr real kEpsilon = std::numeric_limits<real>::epsilon();
  const Simd product = fma(1 + kEpsilon, 1 - kEpsilon, -1), zero = real(-0.0);
  for (Index i = 0; i < kSimdWidth; ++i) {
    if (kFma) {
      EXPECT_EQ(product[i], -kEpsilon * kEpsilon) << "0 if the product is rounded too";
    }
    EXPECT_TRUE(std::signbit(zero[i]));
  }
}

TEST(Simd, loads_and_stores_only_the_requested_elements) {
  for (Index count = 1; count <= kSimdWidth; ++count) {
    std::vector<real> from(static_cast<size_t>(count), 2), to(static_cast<size_t>(count) + 1, 7);
    const Simd x = load(from.data(), count);
    store(select(x > 1, x + 1, 5), to.data(), count);
    for (Index i = 0; i < kSimdWidth; ++i) EXPECT_EQ(x[i], i < count ? 2 : 0);
    EXPECT_EQ(to[static_cast<size_t>(count) - 1], 3);
    EXPECT_EQ(to.back(), 7);
  }
}

TEST(Simd, sum_and_largest_go_over_all_lanes) {
  const auto x = vector_of<real>([](Index i) { return static_cast<real>((i * 5) % kSimdWidth); });
  real total = 0;
  for (Index i = 0; i < kSimdWidth; ++i) total += x[i];
  EXPECT_EQ(sum(x), total);
  EXPECT_EQ(largest(x), kSimdWidth - 1);
  EXPECT_EQ(round_up_to_width(kSimdWidth + 1), 2 * kSimdWidth);
}

}  // namespace
}  // namespace difftape
