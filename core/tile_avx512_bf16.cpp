// Pairs of bfloat16 by the AVX512-BF16 units. Compiled for these alone, so nothing but this file
// may run on processors without them. Clang 16 crashes on it; its programs use the portable loops.
#include "core/tile_registers.h"

#if defined(__AVX512BF16__) && !defined(__clang__) && !defined(DIFFTAPE_F64) && \
    !defined(DIFFTAPE_REGISTER_BYTES)

#include <immintrin.h>

namespace difftape::tile {

namespace {

/// Selects the first `count` lanes.
__mmask16 first_lanes(size_t count) { return static_cast<__mmask16>((1u << count) - 1); }

struct Units {
  using Element = std::uint32_t;
  static constexpr Index kSums = kMostSums;
  template <class Loaded>
  static DIFFTAPE_INLINE Register load(const real* from, size_t count) {
    return _mm512_maskz_loadu_ps(first_lanes(count), from);
  }
  static DIFFTAPE_INLINE void store(const Register& x, real* to, size_t count) {
    _mm512_mask_storeu_ps(to, first_lanes(count), x);
  }
  static DIFFTAPE_INLINE __m512i left(const std::uint32_t* a) {
    int word;
    std::memcpy(&word, a, sizeof word);
    return _mm512_set1_epi32(word);
  }
  static DIFFTAPE_INLINE __m512i right(const std::uint32_t* b, size_t count) {
    return _mm512_maskz_loadu_epi32(first_lanes(count), b);
  }
  static DIFFTAPE_INLINE Register sum(const __m512i& left, const __m512i& right,
                                      const Register& so_far) {
    return _mm512_dpbf16_ps(so_far, reinterpret_cast<__m512bh>(left),
                            reinterpret_cast<__m512bh>(right));
  }
  static DIFFTAPE_INLINE Register scaled(const Register& sum, real factor) {
    return sum * (factor - Register{});
  }
};

void round(const real* first, const real* second, Index n, std::uint32_t* pairs,
           std::uint16_t* first_row, std::uint16_t* second_row) {
  alignas(64) static constexpr auto kJoin = [] {
    std::array<std::uint16_t, 32> order{};
    for (std::uint16_t i = 0; i < 32; ++i) order[i] = i / 2 + i % 2 * 16;
    return order;
  }();
  const __m512i join = _mm512_load_si512(kJoin.data());
  for (Index at = 0; at < n; at += kSimdWidth) {
    // The 16 elements of the first row, then those of the second.
    const auto both = reinterpret_cast<__m512i>(
        _mm512_cvtne2ps_pbh(_mm512_loadu_ps(second + at), _mm512_loadu_ps(first + at)));
    if (pairs != nullptr) _mm512_storeu_si512(pairs + at, _mm512_permutexvar_epi16(join, both));
    if (first_row == nullptr) continue;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(first_row + at), _mm512_castsi512_si256(both));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(second_row + at),
                        _mm512_extracti64x4_epi64(both, 1));
  }
}

}  // namespace

const PairBackend* avx512_bf16_pairs() {
  static constexpr PairBackend kBackend{InRegisters<Units>::multiply, round};
  static const bool usable = __builtin_cpu_supports("avx512bf16");
  return usable ? &kBackend : nullptr;
}

}  // namespace difftape::tile

#else

namespace difftape::tile {
const PairBackend* avx512_bf16_pairs() { return nullptr; }
}  // namespace difftape::tile

#endif
