#pragma once
// exp, sigmoid and tanh of kSimdWidth elements at once.

#include <bit>

#include "core/simd.h"

namespace difftape {

namespace detail {

/// Constants for the range reduction of exp: x = n ln 2 + f, |f| <= ln 2 / 2.
struct ExpConstants {
  real lowest;             ///< smaller arguments give 0, as results would be subnormal
  real shift;              ///< adding it gives an integer in the low bits, with the exponent's bias
  real ln2_high, ln2_low;  ///< sum to ln 2; n * ln2_high is exact
  int mantissa_bits;       ///< below the exponent field
  int degree;              ///< of the Taylor polynomial; the next term is below the last digit
};
inline constexpr ExpConstants kExp = sizeof(real) == 4
                                         ? ExpConstants{real(-87.33654),
                                                        real(12582912 + 127),
                                                        real(0.693359375),
                                                        real(-2.12194440054690583e-4),
                                                        23,
                                                        7}
                                         : ExpConstants{real(-708.396418532264),
                                                        real(6755399441055744 + 1023),
                                                        real(0.693147180369123816490),
                                                        real(1.90821492927058770002e-10),
                                                        52,
                                                        13};

constexpr real inverse_factorial(int k) {
  double product = 1;
  for (int i = 2; i <= k; ++i) product *= i;
  return static_cast<real>(1 / product);
}

/// Returns terms k to `last` of the series of exp, divided by f^last.
template <int k, int last = 0>
DIFFTAPE_INLINE Simd exp_horner(const Simd& f, Simd sum_so_far) {
  sum_so_far = fma(sum_so_far, f, inverse_factorial(k));
  if constexpr (k == last) {
    return sum_so_far;
  } else {
    return exp_horner<k - 1, last>(f, sum_so_far);
  }
}

}  // namespace detail

/// Returns exp(x) for x <= 1 to within two units of the last digit; 0 instead of subnormals, NaN
/// for NaN (Cody & Waite 1980, chapter 6).
DIFFTAPE_INLINE Simd exp_simd(const Simd& x) {
  constexpr const detail::ExpConstants& c = detail::kExp;
  const Simd shifted = fma(x, static_cast<real>(1.4426950408889634074), c.shift);
  const Simd n = shifted - c.shift;
  const Simd f = fma(n, -c.ln2_low, fma(n, -c.ln2_high, x));
  const Simd power = detail::exp_horner<c.degree - 1>(f, detail::inverse_factorial(c.degree));
  const SimdInts exponent = std::bit_cast<SimdInts>(shifted) << c.mantissa_bits;
  const Simd result = power * std::bit_cast<Simd>(exponent);
  return select(x < c.lowest, Simd(), result);
}

/// z := exp(z - top), 0 instead of subnormals; returns the sum.
inline real exp_of_differences(real* z, Index n, real top) {
  Simd total{};
  for_each_vector(n, [&](Index j, Index count) {
    const Simd e = exp_simd(load(z + j, count) - top);
    store(e, z + j, count);
    if (count == kSimdWidth) total += e;
  });
  real all = sum(total);
  for (Index j = n / kSimdWidth * kSimdWidth; j < n; ++j) all += z[j];
  return all;
}

/// Returns 1 / (1 + exp(-x)); exp never overflows.
DIFFTAPE_INLINE Simd sigmoid_simd(const Simd& x) {
  const Simd small = exp_simd(select(x < 0, x, -x)), of_positive = 1 / (1 + small);
  return select(x < 0, small * of_positive, of_positive);
}

/// Returns tanh(x) to within a few units of the last digit; NaN for NaN. |tanh(x)| = -m / (2 + m)
/// with m = exp(-2 |x|) - 1, which near 0 is the series of exp without its 1.
DIFFTAPE_INLINE Simd tanh_simd(const Simd& x) {
  constexpr const detail::ExpConstants& c = detail::kExp;
  constexpr real kHalfLn2 = real(0.34657359027997265);
  const Simd f = select(x < 0, x + x, -(x + x));
  const Simd near = f * detail::exp_horner<c.degree - 1, 1>(f, detail::inverse_factorial(c.degree));
  const Simd m = select(f > -kHalfLn2, near, exp_simd(f) - 1);
  const Simd size = -m / (m + 2);
  return select(x < 0, -size, size);
}

}  // namespace difftape
