#include "core/saved_tensor.h"

#include "core/bf16.h"
#include "core/pack.h"
#include "tests/core/arithmetics.h"
#include "tests/support/tensors.h"

namespace difftape {
namespace {

constexpr std::pair<Index, Index> kSizes[] = {{1, 1},    {3, 70},   {40, 33},  {130, 64},
                                              {96, 200}, {5, 1024}, {33, 1365}};

TEST(SavedTensor, shares_a_tensor_if_nothing_is_rounded) {
  const Tensor x = test::random({3, 5}, "x");
  const SavedTensor saved(x, Precision::full);
  EXPECT_EQ(saved.matrix().data, x.data());
  EXPECT_EQ(saved.matrix().bf16, nullptr);
}

TEST(SavedTensor, keeps_rounded_elements_in_two_bytes_each) {
  const Tensor x = test::random({200, 3, 32}, "x");
  const auto before = pool::stats().bytes_in_use;
  const SavedTensor saved(x, Precision::bf16_emulated);
  EXPECT_EQ(pool::stats().bytes_in_use - before, 2u * x.size());
  Tensor rounded = x.clone();
  for (real& y : rounded.values()) y = round_bf16(y);
  for (Index i = 0; i < x.size(); ++i)
    EXPECT_EQ(from_bf16_bits(saved.matrix().bf16[i]), rounded.data()[i]) << i;
  EXPECT_EQ(saved.shape(), x.shape());
  EXPECT_EQ(saved.matrix().rows, 600);
  EXPECT_EQ(saved.matrix().cols, 32);
}

TEST(SavedTensor, of_no_elements_has_none) {
  for (const Precision precision : {Precision::full, Precision::bf16_emulated})
    EXPECT_EQ(SavedTensor(Tensor::empty({0, 4}), precision).matrix().rows, 0);
}

/// Returns the bytes of a panel of B, or of columns [k, k + count) of A as tiles read them.
std::vector<unsigned char> panel_of(pack::Pairs pairs, const Operand& b, Index first) {
  std::vector<unsigned char> bytes(pack::panel_bytes(pairs, b.rows, kPanel));
  pack::panel(pairs, b, first, bytes.data());
  return bytes;
}
std::vector<unsigned char> left_of(pack::Pairs pairs, const Operand& a, Index k, Index count) {
  std::vector<unsigned char> scratch(pack::left_bytes(pairs, a.rows, count)), bytes;
  const pack::Left left = pack::left(pairs, a, k, count, scratch.data());
  const Index size = pack::element_size(pairs), length = pack::padded_inner(pairs, count);
  for (Index i = 0; i < (left.transposed ? length : a.rows); ++i) {
    const auto* row = static_cast<const unsigned char*>(left.data) + i * left.stride * size;
    bytes.insert(bytes.end(), row, row + (left.transposed ? a.rows : length) * size);
  }
  return bytes;
}

TEST(SavedTensor, is_packed_into_the_same_bytes_as_its_tensor) {
  for (const auto& [rows, cols] : kSizes) {
    const Tensor x = test::random({rows, cols}, "x");
    const SavedTensor saved(x, Precision::bf16_emulated);
    for (const pack::Pairs pairs : {tile::portable_pairs(), tile::avx512_bf16_pairs()}) {
      if (pairs == nullptr) continue;
      for (const bool transposed : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << rows << " x " << cols << ", " << (pairs == tile::portable_pairs())
                     << ", transposed: " << transposed);
        const Operand plain = transposed ? transpose(matrix(x)) : matrix(x),
                      kept = transposed ? transpose(saved.matrix()) : saved.matrix();
        for (Index first = 0; first < plain.cols; first += kPanel)
          EXPECT_EQ(panel_of(pairs, kept, first), panel_of(pairs, plain, first)) << first;
        const Index k = plain.cols / 3;
        EXPECT_EQ(left_of(pairs, kept, k, plain.cols - k),
                  left_of(pairs, plain, k, plain.cols - k));
        EXPECT_EQ(left_of(pairs, kept, 0, plain.cols), left_of(pairs, plain, 0, plain.cols));
      }
    }
  }
}

TEST(SavedTensor, rows_of_bfloat16_without_padding_are_read_in_place) {
  const SavedTensor saved(test::random({5, 96}, "x"), Precision::bf16_emulated);
  const Operand a = saved.matrix();
  std::vector<std::uint16_t> scratch(5 * 96);
  const auto read = [&](const Operand& m, Index k, Index count) {
    return pack::left(tile::portable_pairs(), m, k, count, scratch.data()).data;
  };
  EXPECT_EQ(read(a, 0, 96), a.bf16);
  EXPECT_EQ(read(a, 32, 64), a.bf16 + 32);
  EXPECT_EQ(read(a, 1, 94), scratch.data());
  EXPECT_EQ(read(a, 0, 61), scratch.data());
  const SavedTensor odd(test::random({5, 33}, "x"), Precision::bf16_emulated);
  EXPECT_EQ(read(odd.matrix(), 0, 32), scratch.data());
}

class EverySavedTensor : public test::EveryArithmetic {};

TEST_P(EverySavedTensor, has_the_products_of_its_tensor) {
  for (const auto& [rows, cols] : kSizes) {
    const Tensor x = test::random({rows, cols}, "x"), y = test::random({cols, 70}, "y"),
                 z = test::random({rows, 70}, "z");
    const SavedTensor saved(x, precision);
    const auto products = [&, rows = rows, cols = cols](const Operand& a) {
      Tensor on_the_left = Tensor::empty({rows, 70}), on_the_right = Tensor::empty({70, cols});
      gemm(a, matrix(y), on_the_left.data(), 70, Accumulate::no, precision);
      gemm(transpose(matrix(z)), a, on_the_right.data(), cols, Accumulate::no, precision);
      return std::pair(on_the_left, on_the_right);
    };
    const auto [left, right] = products(saved.matrix());
    const auto [expected_left, expected_right] = products(matrix(x));
    EXPECT_TRUE(test::same(left, expected_left)) << rows << " x " << cols;
    EXPECT_TRUE(test::same(right, expected_right)) << rows << " x " << cols;
  }
}

INSTANTIATE_TEST_SUITE_P(Arithmetics, EverySavedTensor, testing::ValuesIn(test::arithmetics()),
                         test::name_of);

}  // namespace
}  // namespace difftape
