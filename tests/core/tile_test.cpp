// bfloat16 tiles of each backend, without core/gemm.
#include "core/tile.h"

#include "core/bf16.h"
#include "core/gemm.h"
#include "core/pool.h"
#include "tests/support/tensors.h"
#include "tests/support/test.h"

namespace difftape {
namespace {

/// Standard normal numbers that are bfloat16s.
Tensor random(Index rows, Index cols, const char* name) {
  Tensor x = test::random({rows, cols}, name);
  round_bf16(x.data(), x.size());
  return x;
}

/// Aligned memory of zeros.
std::shared_ptr<std::uint16_t> zeros(Index count) {
  const auto memory = pool::allocate(static_cast<size_t>(count) * sizeof(std::uint16_t));
  auto* first = static_cast<std::uint16_t*>(memory.get());
  std::fill_n(first, count, std::uint16_t{0});
  return {memory, first};
}

/// The left operand: row-major.
std::shared_ptr<std::uint16_t> rows_of(const Tensor& a) {
  const auto result = zeros(a.size());
  for (Index i = 0; i < a.size(); ++i) result.get()[i] = bf16_bits(a.data()[i]);
  return result;
}

/// The right operand: a panel in pairs, zero beyond its columns.
std::shared_ptr<std::uint16_t> panel_of(const Tensor& b) {
  const Index k = b.shape()[0], n = b.shape()[1];
  const auto result = zeros(k * kPanel);
  for (Index i = 0; i < k; ++i) {
    for (Index j = 0; j < n; ++j) {
      result.get()[(i / 2 * kPanel + j) * 2 + i % 2] = bf16_bits(b.row(i)[j]);
    }
  }
  return result;
}

constexpr real kBefore = real(0.5);

/// Makes C as a tile of a wider matrix; elements to be overwritten are NaN.
Tensor make_result(Index m, Index n, Index stride, bool add) {
  Tensor c = Tensor::full({m, stride}, kBefore);
  for (Index i = 0; i < m && !add; ++i) {
    std::fill_n(c.row(i), n, std::numeric_limits<real>::quiet_NaN());
  }
  return c;
}

void expect_tile(const tile::Backend& backend, Index m, Index n, Index k, bool add) {
  const Index stride = kPanel + 3;
  const Tensor a = random(m, k, "a"), b = random(k, n, "b");
  Tensor c = make_result(m, n, stride, add);
  const tile::Kernel multiply = backend.kernel({m, n, k, k, kPanel, stride, false, add});
  multiply(rows_of(a).get(), panel_of(b).get(), c.data());
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) {
      double sum = add ? kBefore : 0, size = sum;
      for (Index l = 0; l < k; ++l) {
        const double term = static_cast<double>(a.row(i)[l]) * static_cast<double>(b.row(l)[j]);
        sum += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(static_cast<double>(c.row(i)[j]), sum, 4 * 1.2e-7 * size) << i << "," << j;
    }
    for (Index j = n; j < stride; ++j) ASSERT_EQ(c.row(i)[j], kBefore) << i << "," << j;
  }
}

const tile::Backend* loops() {
  static const tile::Backend backend{"loops", tile::bf16_loop};
  return &backend;
}

using FindBackend = const tile::Backend* (*)();

struct Bf16Tiles : testing::TestWithParam<FindBackend> {
  void SetUp() override {
    if (GetParam()() == nullptr) GTEST_SKIP() << "not available here";
  }
};

TEST_P(Bf16Tiles, match_sums_in_double_and_stay_within_their_columns) {
  for (const Index m : {1, 5, 32, 128}) {
    for (const Index n : {1, 45, 64}) {
      if (n > kPanel) continue;
      for (const Index k : {32, 352}) {
        for (const bool add : {false, true}) {
          SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << ", add " << add);
          expect_tile(*GetParam()(), m, n, k, add);
        }
      }
    }
  }
}

TEST_P(Bf16Tiles, whole_tiles_are_generated_code) {
  const tile::Kernel multiply =
      GetParam()()->kernel({128, kPanel, 352, 352, kPanel, kPanel, false, true});
  EXPECT_EQ(multiply.generated == nullptr, GetParam() == loops);
}

TEST_P(Bf16Tiles, one_kernel_serves_many_tiles) {
  constexpr Index kRows = 5, kInner = 64;
  const tile::Kernel multiply =
      GetParam()()->kernel({kRows, kPanel, kInner, kInner, kPanel, kPanel, false, true});
  const auto a = rows_of(random(2 * kRows, kInner, "a")), b = panel_of(random(kInner, kPanel, "b"));
  Tensor both = Tensor::zeros({2 * kRows, kPanel}), second = Tensor::zeros({kRows, kPanel});
  multiply(a.get(), b.get(), both.data());
  multiply(a.get() + kRows * kInner, b.get(), both.row(kRows));
  multiply(a.get() + kRows * kInner, b.get(), second.data());
  EXPECT_TRUE(std::equal(second.values().begin(), second.values().end(), both.row(kRows)));
  EXPECT_FALSE(std::equal(second.values().begin(), second.values().end(), both.data()));
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
    if (pairs == nullptr) GTEST_SKIP() << "not available here";
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

std::string name_of(const testing::TestParamInfo<FindBackend>& backend) {
  return backend.param == loops ? "loops" : "libxsmm";
}

INSTANTIATE_TEST_SUITE_P(Backends, Bf16Tiles, testing::Values(&tile::libxsmm_bf16_backend, &loops),
                         name_of);

}  // namespace
}  // namespace difftape
