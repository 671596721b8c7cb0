// Tiles of bfloat16 in pairs, without core/gemm.
#include "core/tile.h"

#include "core/bf16.h"
#include "core/gemm_backend.h"
#include "tests/support/tensors.h"
#include "tests/support/test.h"

namespace difftape {
namespace {

constexpr real kBefore = real(0.5);

/// Makes C as a tile of a wider matrix; elements to be overwritten are NaN.
Tensor make_result(Index m, Index n, Index stride, bool add) {
  Tensor c = Tensor::full({m, stride}, kBefore);
  for (Index i = 0; i < m && !add; ++i) {
    std::fill_n(c.row(i), n, std::numeric_limits<real>::quiet_NaN());
  }
  return c;
}

/// Reads a half of a word.
float half_of(std::uint32_t word, int which) {
  return static_cast<float>(from_bf16_bits(static_cast<std::uint16_t>(word >> 16 * which)));
}

/// Random pairs.
std::vector<std::uint32_t> random_pairs(Index count, const char* name) {
  const Tensor x = test::random({count, 2}, name);
  std::vector<std::uint32_t> words;
  for (Index i = 0; i < count; ++i) words.push_back(bf16_pair(x.row(i)[0], x.row(i)[1]));
  return words;
}

using FindPairs = const tile::PairBackend* (*)();

struct PairTiles : testing::TestWithParam<FindPairs> {
  void SetUp() override {
    if (pairs == nullptr)
      GTEST_SKIP() << test::kOtherHardware << unsupported_reason(Precision::bf16);
  }
  const tile::PairBackend* const pairs = GetParam()();
};

TEST_P(PairTiles, an_element_is_one_chain_of_sums_with_any_strides) {
  for (const auto& [m, n, k] : {std::tuple<Index, Index, Index>{1, 1, 1},
                                {5, 8, 7},
                                {32, 16, 32},
                                {64, 45, 32},
                                {24, 64, 2}}) {
    for (const bool transposed : {false, true}) {
      for (const auto& [add, factor] : {std::pair{true, real(1)}, {false, real(0.3)}}) {
        SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << ", " << add);
        const Index a_stride = (transposed ? m : k) + 3, b_stride = n + 1, c_stride = n + 2;
        const auto a = random_pairs((transposed ? k : m) * a_stride, "a"),
                   b = random_pairs(k * b_stride, "b");
        Tensor c = make_result(m, n, c_stride, add);
        const Index row = transposed ? 1 : a_stride, inner = transposed ? a_stride : 1;
        pairs->multiply({.a = a.data(),
                         .b = b.data(),
                         .c = c.data(),
                         .m = m,
                         .n = n,
                         .k = k,
                         .a_row = row,
                         .a_inner = inner,
                         .b_stride = b_stride,
                         .c_stride = c_stride,
                         .add = add,
                         .factor = factor});
        for (Index i = 0; i < m; ++i) {
          for (Index j = 0; j < n; ++j) {
            real sum = add ? kBefore : 0;
            for (Index l = 0; l < k; ++l) {
              const std::uint32_t x = a[i * row + l * inner], y = b[l * b_stride + j];
              for (const int which : {1, 0})
                sum += real(half_of(x, which)) * real(half_of(y, which));
            }
            ASSERT_EQ(c.row(i)[j], sum * factor) << i << ", " << j;
          }
          for (Index j = n; j < c_stride; ++j) ASSERT_EQ(c.row(i)[j], kBefore) << i << ", " << j;
        }
      }
    }
  }
}

TEST_P(PairTiles, rounds_two_rows_to_pairs_and_to_rows) {
  const Index n = 3 * kSimdWidth;
  Tensor x = test::random({2, n}, "x");
  x.row(0)[1] = -std::numeric_limits<real>::infinity();
  x.row(1)[2] = std::numeric_limits<real>::quiet_NaN();
  std::vector<std::uint32_t> both(n), alone(n);
  std::vector<std::uint16_t> first(n), second(n);
  pairs->round(x.row(0), x.row(1), n, both.data(), first.data(), second.data());
  pairs->round(x.row(0), x.row(1), n, alone.data(), nullptr, nullptr);
  EXPECT_EQ(alone, both);
  for (Index i = 0; i < n; ++i) {
    EXPECT_EQ(both[i], bf16_pair(x.row(0)[i], x.row(1)[i])) << i;
    EXPECT_EQ(both[i], bf16_pair(first[i], second[i])) << i;
  }
}

std::string name_of_pairs(const testing::TestParamInfo<FindPairs>& pairs) {
  return pairs.index == 0 ? "loops" : "units";
}
INSTANTIATE_TEST_SUITE_P(Backends, PairTiles,
                         testing::Values(&tile::portable_pairs, &tile::avx512_bf16_pairs),
                         name_of_pairs);

}  // namespace
}  // namespace difftape
