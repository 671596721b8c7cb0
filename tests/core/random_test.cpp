#include "core/random.h"

#include <cmath>

namespace difftape {
namespace {

TEST(RandomStream, is_a_function_of_seed_name_and_index) {
  const RandomStream a(1, "x"), same(1, "x"), other_name(1, "y"), other_seed(2, "x");
  EXPECT_EQ(a.bits(7), same.bits(7));
  EXPECT_NE(a.bits(7), a.bits(8));
  EXPECT_NE(a.bits(7), other_name.bits(7));
  EXPECT_NE(a.bits(7), other_seed.bits(7));
}

// The values that every release must keep: runs of different versions stay comparable.
TEST(RandomStream, keeps_its_published_values) {
  const RandomStream stream(1, "model.embed_tokens.weight");
  EXPECT_EQ(stream.bits(0), 5175746832749679180u);
  EXPECT_EQ(stream.bits(1), 2690239818628133296u);
  EXPECT_DOUBLE_EQ(stream.normal(0), 1.9800676365257597);
}

TEST(RandomStream, normal_numbers_have_the_moments_of_a_standard_normal) {
  const RandomStream stream(3, "moments");
  constexpr int kCount = 200000;
  double sum = 0, square = 0, fourth = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double x = stream.normal(i);
    sum += x;
    square += x * x;
    fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / kCount, 0, 5 / std::sqrt(kCount));
  EXPECT_NEAR(square / kCount, 1, 5 * std::sqrt(2.0 / kCount));
  EXPECT_NEAR(fourth / kCount, 3, 5 * std::sqrt(96.0 / kCount));
}

TEST(RandomStream, below_is_uniform_and_in_range) {
  const RandomStream stream(4, "below");
  std::vector<int> counts(7);
  for (std::uint64_t i = 0; i < 70000; ++i) ++counts[stream.below(i, 7)];
  for (int count : counts) EXPECT_NEAR(count, 10000, 500);
}

TEST(RandomStream, uniform_stays_strictly_inside_the_unit_interval) {
  const RandomStream stream(5, "uniform");
  for (std::uint64_t i = 0; i < 10000; ++i) {
    EXPECT_GT(stream.uniform(i), 0);
    EXPECT_LT(stream.uniform(i), 1);
  }
}

}  // namespace
}  // namespace difftape
