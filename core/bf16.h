#pragma once
// bfloat16: the upper half of a float, rounded to nearest, ties to even.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/real.h"

namespace difftape {

namespace detail {
/// Returns x rounded to bfloat16 in the upper half of the bits; the lower half is not cleared. NaN
/// stays NaN, overflow becomes infinity.
inline std::uint32_t rounded_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t nearest = bits + 0x7fff + ((bits >> 16) & 1);
  return (bits & 0x7fffffff) > 0x7f800000 ? bits | 0x400000 : nearest;
}
}  // namespace detail

/// Returns the bits of x as a bfloat16.
inline std::uint16_t bf16_bits(real x) {
  return static_cast<std::uint16_t>(detail::rounded_bits(static_cast<float>(x)) >> 16);
}

/// Returns the value of the bits.
inline real from_bf16_bits(std::uint16_t bits) {
  return static_cast<real>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
}

inline std::uint16_t bf16_bits(std::uint16_t bits) { return bits; }

/// Returns two values as neighboring bfloat16s, `first` at the lower address.
inline std::uint32_t bf16_pair(real first, real second) {
  return (detail::rounded_bits(static_cast<float>(first)) >> 16) |
         (detail::rounded_bits(static_cast<float>(second)) & 0xffff0000);
}

inline std::uint32_t bf16_pair(std::uint16_t first, std::uint16_t second) {
  return first | std::uint32_t{second} << 16;
}

/// Joins two rows of n elements into words; `second` may be null for zeros.
inline void join_bf16(const std::uint16_t* first, const std::uint16_t* second, Index n,
                      std::uint32_t* to) {
  if (second != nullptr) {
    for (Index i = 0; i < n; ++i) to[i] = bf16_pair(first[i], second[i]);
  } else {
    std::copy_n(first, n, to);
  }
}

/// Returns x rounded to the nearest bfloat16.
inline real round_bf16(real x) {
  return static_cast<real>(
      std::bit_cast<float>(detail::rounded_bits(static_cast<float>(x)) & 0xffff0000));
}

}  // namespace difftape
