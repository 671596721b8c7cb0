#include "core/random.h"

#include "tests/support/test.h"

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

std::vector<std::uint64_t> numbers_of(const RandomPermutation& order, std::uint64_t size) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < size; ++i) numbers.push_back(order(i));
  return numbers;
}

TEST(RandomPermutation, has_each_number_once) {
  for (const std::uint64_t size : {1, 2, 3, 4, 5, 7, 16, 17, 97, 256, 257, 1009, 4096, 10007}) {
    std::vector<std::uint64_t> numbers = numbers_of(RandomPermutation(size, 5, "order"), size);
    std::ranges::sort(numbers);
    for (std::uint64_t i = 0; i < size; ++i) ASSERT_EQ(numbers[i], i) << size;
  }
}

TEST(RandomPermutation, of_more_than_memory_holds_stays_in_range_and_one_to_one) {
  const std::uint64_t size = (std::uint64_t{1} << 61) + 3;
  const RandomPermutation order(size, 5, "order");
  std::set<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    for (const std::uint64_t at : {i, size - 1 - i}) {
      EXPECT_LT(order(at), size);
      EXPECT_TRUE(numbers.insert(order(at)).second);
    }
  }
}

TEST(RandomPermutation, is_a_function_of_size_seed_and_name) {
  const auto numbers = numbers_of(RandomPermutation(50, 1, "x"), 50);
  EXPECT_EQ(numbers_of(RandomPermutation(50, 1, "x"), 50), numbers);
  EXPECT_NE(numbers_of(RandomPermutation(50, 2, "x"), 50), numbers);
  EXPECT_NE(numbers_of(RandomPermutation(50, 1, "y"), 50), numbers);
}

// The values that every release must keep: runs of different versions stay comparable.
TEST(RandomPermutation, keeps_its_published_values) {
  EXPECT_EQ(numbers_of(RandomPermutation(10, 1, "data/epoch"), 10),
            (std::vector<std::uint64_t>{8, 9, 3, 0, 7, 1, 5, 4, 6, 2}));
}

TEST(RandomPermutation, has_every_order_of_four_equally_often) {
  std::map<std::vector<std::uint64_t>, int> counts;
  constexpr int kSeeds = 24000;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
    ++counts[numbers_of(RandomPermutation(4, seed, "order"), 4)];
  ASSERT_EQ(counts.size(), 24u);
  double chi_square = 0;
  for (const auto& [numbers, count] : counts) chi_square += std::pow(count - 1000, 2) / 1000.0;
  EXPECT_LT(chi_square, 60) << "23 degrees of freedom: 1 in 30,000 is above";
}

TEST(RandomPermutation, puts_every_number_at_every_position_and_separates_neighbors) {
  constexpr std::uint64_t kSize = 37;
  constexpr int kSeeds = 37000;
  std::vector<int> counts(kSize * kSize);
  int neighbors = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto numbers = numbers_of(RandomPermutation(kSize, seed, "order"), kSize);
    for (std::uint64_t i = 0; i < kSize; ++i) {
      ++counts[i * kSize + numbers[i]];
      if (i > 0 && numbers[i] == numbers[i - 1] + 1) ++neighbors;
    }
  }
  double chi_square = 0;
  for (const int count : counts) chi_square += std::pow(count - 1000, 2) / 1000.0;
  EXPECT_NEAR(chi_square, 36 * 36, 5 * std::sqrt(2.0 * 36 * 36));
  // Each of 36 neighboring pairs is consecutive with probability 1/37, so mean and variance are
  // 36/37 per order.
  const double expected = kSeeds * 36.0 / 37;
  EXPECT_NEAR(neighbors, expected, 5 * std::sqrt(expected));
}

}  // namespace
}  // namespace difftape
