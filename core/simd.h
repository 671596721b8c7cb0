#pragma once
// One vector register of numbers, for loops that Eigen cannot fuse. Arithmetic is element-wise: the
// vector extension of GCC and Clang, lowered to whatever the processor has.

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/real.h"

// All functions here are inlined: how a vector would be passed to another one does not matter.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace difftape {

inline constexpr Index kSimdWidth = 64 / static_cast<Index>(sizeof(real));

using Simd = real __attribute__((vector_size(64)));
using SimdInt = std::conditional_t<sizeof(real) == 4, std::int32_t, std::int64_t>;
using SimdInts = SimdInt __attribute__((vector_size(64)));

/// kSimdWidth numbers from anywhere, and back.
inline Simd load(const real* from) {
  Simd x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
inline void store(const Simd& x, real* to) { std::memcpy(to, &x, sizeof x); }

/// The first `count` of them, 1 to kSimdWidth; the others are 0, or stay as they are in memory.
inline Simd load(const real* from, Index count) {
  if (count == kSimdWidth) return load(from);
  Simd x{};
  std::memcpy(&x, from, static_cast<size_t>(count) * sizeof(real));
  return x;
}
inline void store(const Simd& x, real* to, Index count) {
  if (count == kSimdWidth) return store(x, to);
  std::memcpy(to, &x, static_cast<size_t>(count) * sizeof(real));
}
/// Calls f(first, count) for the vectors that n numbers make; the last may be shorter.
template <class F>
void for_each_vector(Index n, F&& f) {
  Index i = 0;
  for (; i + kSimdWidth <= n; i += kSimdWidth) f(i, kSimdWidth);
  if (i < n) f(i, n - i);
}

/// The same number in every element.
inline Simd broadcast(real x) { return Simd{} + x; }

namespace detail {
template <Index distance, size_t... lane>
inline Simd rotated(const Simd& x, std::index_sequence<lane...>) {
  return __builtin_shufflevector(x, x, (static_cast<Index>(lane) + distance) % kSimdWidth...);
}
/// Rotated: element i holds what was in element i + distance.
template <Index distance>
inline Simd rotated(const Simd& x) {
  return rotated<distance>(x, std::make_index_sequence<kSimdWidth>());
}

template <Index width = kSimdWidth / 2>
inline Simd folded_sum(const Simd& x) {
  const Simd halves = x + rotated<width>(x);
  if constexpr (width == 1) {
    return halves;
  } else {
    return folded_sum<width / 2>(halves);
  }
}

template <Index width = kSimdWidth / 2>
inline Simd folded_largest(const Simd& x) {
  const Simd other = rotated<width>(x), halves = other > x ? other : x;
  if constexpr (width == 1) {
    return halves;
  } else {
    return folded_largest<width / 2>(halves);
  }
}
}  // namespace detail

/// Sum of the elements, by halves.
inline real sum(const Simd& x) { return detail::folded_sum(x)[0]; }

/// Largest element; what it is if one is NaN is not specified.
inline real largest(const Simd& x) { return detail::folded_largest(x)[0]; }

/// Multiples of kSimdWidth that hold n numbers.
constexpr Index round_up_to_width(Index n) { return round_up(n, kSimdWidth); }

namespace detail {

/// How exp splits its argument in this precision: x = n ln 2 + f, |f| <= ln 2 / 2.
struct ExpConstants {
  real lowest;              ///< below it the result is no normal number: 0
  real shift;               ///< adding it rounds to a whole number and leaves that in the low bits
  real ln2_high, ln2_low;   ///< their sum is ln 2, n * ln2_high is exact
  int mantissa_bits, bias;  ///< of the exponent field
  int degree;               ///< of the Taylor polynomial; the next term is below the last digit
};
inline constexpr ExpConstants kExp = sizeof(real) == 4
                                         ? ExpConstants{real(-87.33654),
                                                        real(12582912),
                                                        real(0.693359375),
                                                        real(-2.12194440054690583e-4),
                                                        23,
                                                        127,
                                                        7}
                                         : ExpConstants{real(-708.396418532264),
                                                        real(6755399441055744),
                                                        real(0.693147180369123816490),
                                                        real(1.90821492927058770002e-10),
                                                        52,
                                                        1023,
                                                        13};

/// 1 / k!
constexpr real inverse_factorial(int k) {
  double product = 1;
  for (int i = 2; i <= k; ++i) product *= i;
  return static_cast<real>(1 / product);
}

/// The terms k to `last` of the series of exp, divided by f^last.
template <int k, int last = 0>
inline Simd exp_horner(const Simd& f, Simd sum_so_far) {
  sum_so_far = sum_so_far * f + inverse_factorial(k);
  if constexpr (k == last) {
    return sum_so_far;
  } else {
    return exp_horner<k - 1, last>(f, sum_so_far);
  }
}

}  // namespace detail

/// exp(x) of each element for x <= 1, to within two units of the last digit; 0 where the result
/// would be below the smallest normal number, NaN for NaN (Cody & Waite 1980, chapter 6).
inline Simd exp_simd(const Simd& x) {
  constexpr const detail::ExpConstants& c = detail::kExp;
  const Simd bounded = x < c.lowest ? broadcast(c.lowest) : x;
  const Simd shifted = bounded * static_cast<real>(1.4426950408889634074) + c.shift;
  const Simd n = shifted - c.shift;
  const Simd f = bounded - n * c.ln2_high - n * c.ln2_low;
  const Simd power =
      detail::exp_horner<c.degree - 1>(f, broadcast(detail::inverse_factorial(c.degree)));
  const SimdInts exponent =
      (std::bit_cast<SimdInts>(shifted) << c.mantissa_bits) + (SimdInt{c.bias} << c.mantissa_bits);
  const Simd result = power * std::bit_cast<Simd>(exponent);
  return x < c.lowest ? Simd{} : result;
}

/// tanh(x) of each element, to within a few units of the last digit; NaN for NaN. With
/// m = exp(-2 |x|) - 1, which near 0 is the series of exp without its 1, |tanh(x)| = -m / (2 + m).
inline Simd tanh_simd(const Simd& x) {
  constexpr const detail::ExpConstants& c = detail::kExp;
  constexpr real kHalfLn2 = real(0.34657359027997265);
  const Simd f = x < 0 ? x + x : -(x + x);
  const Simd near =
      f * detail::exp_horner<c.degree - 1, 1>(f, broadcast(detail::inverse_factorial(c.degree)));
  const Simd m = f > -kHalfLn2 ? near : exp_simd(f) - 1;
  const Simd size = -m / (m + 2);
  return x < 0 ? -size : size;
}

}  // namespace difftape
