// Pairs of bfloat16 in portable vectors. A product of two is exact in f32 unless it is too large or
// too small for it, so the bits do not depend on fused multiply-add.
#include <bit>

#include "core/bf16.h"
#include "core/tile_registers.h"

namespace difftape::tile {

namespace {

struct Loops : PlainMemory {
  using Element = std::uint32_t;
  static constexpr Index kSums = kMostSums * 2 / 3;  // a word needs two registers
  /// The two elements of each word.
  struct Both {
    Register first, second;
  };
  static DIFFTAPE_INLINE Both left(const std::uint32_t* a) {
    std::uint32_t word;
    std::memcpy(&word, a, sizeof word);
    const auto lanes = [](std::uint32_t bits) {
      return static_cast<real>(std::bit_cast<float>(bits)) - Register{};
    };
    return {lanes(word << 16), lanes(word & 0xffff0000)};
  }
  static DIFFTAPE_INLINE Both right(const std::uint32_t* b, size_t count) {
    const auto words = load<Words>(b, count);
    const auto numbers = [](const Words& bits) {
      return __builtin_convertvector(std::bit_cast<Floats>(bits), Register);
    };
    return {numbers(words << 16), numbers(words & 0xffff0000)};
  }
  /// Adds in the order of the AVX512-BF16 units.
  static DIFFTAPE_INLINE Register sum(const Both& left, const Both& right, const Register& so_far) {
    return detail::fused(left.first, right.first, detail::fused(left.second, right.second, so_far));
  }
  static DIFFTAPE_INLINE Register scaled(const Register& sum, real factor) {
    return sum * (factor - Register{});
  }

 private:
  using Words __attribute__((vector_size(detail::kLanes * 4))) = std::uint32_t;
  using Floats __attribute__((vector_size(detail::kLanes * 4))) = float;
};

void round(const real* first, const real* second, Index n, std::uint32_t* pairs,
           std::uint16_t* first_row, std::uint16_t* second_row) {
  for (Index at = 0; at < n; at += kSimdWidth) {
    std::uint32_t words[kSimdWidth];
    for (Index i = 0; i < kSimdWidth; ++i) words[i] = bf16_pair(first[at + i], second[at + i]);
    if (pairs != nullptr) std::memcpy(pairs + at, words, sizeof words);
    if (first_row == nullptr) continue;
    for (Index i = 0; i < kSimdWidth; ++i) {
      first_row[at + i] = static_cast<std::uint16_t>(words[i]);
      second_row[at + i] = static_cast<std::uint16_t>(words[i] >> 16);
    }
  }
}

}  // namespace

const PairBackend* portable_pairs() {
  static constexpr PairBackend kBackend{InRegisters<Loops>::multiply, round};
  return &kBackend;
}

}  // namespace difftape::tile
