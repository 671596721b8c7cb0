#pragma once
// kSimdWidth numbers side by side, for loops that Eigen cannot fuse: 64 bytes on every processor,
// in as many of its vector registers as that takes, so that no sum depends on how wide these are.
// Arithmetic is element-wise. A product and a sum are rounded together where fma is written, and
// nowhere else: the compiler is told to fuse none.

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#if defined(__FMA__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "core/real.h"

// All functions here are inlined: how a vector would be passed to another one does not matter.
#pragma GCC diagnostic ignored "-Wpsabi"
#define DIFFTAPE_INLINE __attribute__((always_inline)) inline

namespace difftape {

inline constexpr Index kSimdWidth = 64 / static_cast<Index>(sizeof(real));

namespace detail {
#if defined(__AVX512F__)
inline constexpr size_t kRegisterBytes = 64;
#elif defined(__AVX2__)
inline constexpr size_t kRegisterBytes = 32;
#else
inline constexpr size_t kRegisterBytes = 16;
#endif
inline constexpr size_t kRegisters = 64 / kRegisterBytes, kLanes = kRegisterBytes / sizeof(real);
using EachRegister = std::make_index_sequence<kRegisters>;

template <class Element>
struct RegisterOf {
  using type __attribute__((vector_size(kRegisterBytes))) = Element;
};
}  // namespace detail

using SimdInt = std::conditional_t<sizeof(real) == 4, std::int32_t, std::int64_t>;

/// kSimdWidth elements, or for comparisons -1 where one holds and 0 where it does not.
template <class Element>
struct Vector {
  using Register = typename detail::RegisterOf<Element>::type;
  Register part[detail::kRegisters];

  Vector() : part{} {}
  /// The same in every element.
  DIFFTAPE_INLINE Vector(Element x) : Vector([x](size_t) { return Register{} + x; }) {}
  /// f(number of a register).
  template <class F>
  requires std::is_invocable_v<F, size_t> DIFFTAPE_INLINE explicit Vector(F&& f)
      : Vector(f, detail::EachRegister()) {}

  Element operator[](Index i) const {
    return part[static_cast<size_t>(i) / detail::kLanes][static_cast<size_t>(i) % detail::kLanes];
  }

  friend DIFFTAPE_INLINE Vector operator+(const Vector& a, const Vector& b) {
    return Vector([&](size_t i) { return a.part[i] + b.part[i]; });
  }
  friend DIFFTAPE_INLINE Vector operator-(const Vector& a, const Vector& b) {
    return Vector([&](size_t i) { return a.part[i] - b.part[i]; });
  }
  friend DIFFTAPE_INLINE Vector operator*(const Vector& a, const Vector& b) {
    return Vector([&](size_t i) { return a.part[i] * b.part[i]; });
  }
  friend DIFFTAPE_INLINE Vector operator/(const Vector& a, const Vector& b) {
    return Vector([&](size_t i) { return a.part[i] / b.part[i]; });
  }
  friend DIFFTAPE_INLINE Vector operator-(const Vector& a) {
    return Vector([&](size_t i) { return -a.part[i]; });
  }
  friend DIFFTAPE_INLINE Vector operator<<(const Vector& a, int bits) {
    return Vector([&](size_t i) { return a.part[i] << bits; });
  }
  friend DIFFTAPE_INLINE Vector<SimdInt> operator<(const Vector& a, const Vector& b) {
    return Vector<SimdInt>([&](size_t i) { return a.part[i] < b.part[i]; });
  }
  friend DIFFTAPE_INLINE Vector<SimdInt> operator>(const Vector& a, const Vector& b) {
    return b < a;
  }
  DIFFTAPE_INLINE Vector& operator+=(const Vector& b) { return *this = *this + b; }

 private:
  template <class F, size_t... i>
  DIFFTAPE_INLINE Vector(F& f, std::index_sequence<i...>) : part{f(i)...} {}
};
using Simd = Vector<real>;
using SimdInts = Vector<SimdInt>;

/// a where `condition` holds, b elsewhere.
DIFFTAPE_INLINE Simd select(const SimdInts& condition, const Simd& a, const Simd& b) {
  return Simd([&](size_t i) { return condition.part[i] ? a.part[i] : b.part[i]; });
}

/// Whether fma rounds once: where the program is compiled for processors that do so.
#if (defined(__FMA__) && defined(__AVX2__)) || defined(__aarch64__)
inline constexpr bool kFma = true;
#else
inline constexpr bool kFma = false;
#endif

/// a b + c, rounded once if kFma.
DIFFTAPE_INLINE Simd fma(const Simd& a, const Simd& b, const Simd& c) {
  return Simd([&](size_t i) {
#if defined(__AVX512F__)
    if constexpr (sizeof(real) == 4) {
      return Simd::Register(
          _mm512_fmadd_ps(__m512(a.part[i]), __m512(b.part[i]), __m512(c.part[i])));
    } else {
      return Simd::Register(
          _mm512_fmadd_pd(__m512d(a.part[i]), __m512d(b.part[i]), __m512d(c.part[i])));
    }
#elif defined(__FMA__) && defined(__AVX2__)
    if constexpr (sizeof(real) == 4) {
      return Simd::Register(
          _mm256_fmadd_ps(__m256(a.part[i]), __m256(b.part[i]), __m256(c.part[i])));
    } else {
      return Simd::Register(
          _mm256_fmadd_pd(__m256d(a.part[i]), __m256d(b.part[i]), __m256d(c.part[i])));
    }
#elif defined(__aarch64__)
    if constexpr (sizeof(real) == 4) {
      return Simd::Register(
          vfmaq_f32(float32x4_t(c.part[i]), float32x4_t(a.part[i]), float32x4_t(b.part[i])));
    } else {
      return Simd::Register(
          vfmaq_f64(float64x2_t(c.part[i]), float64x2_t(a.part[i]), float64x2_t(b.part[i])));
    }
#else
    return a.part[i] * b.part[i] + c.part[i];
#endif
  });
}

/// kSimdWidth numbers from anywhere, and back.
DIFFTAPE_INLINE Simd load(const real* from) {
  return Simd([&](size_t i) {
    Simd::Register x;
    std::memcpy(&x, from + i * detail::kLanes, sizeof x);
    return x;
  });
}
DIFFTAPE_INLINE void store(const Simd& x, real* to) {
  for (size_t i = 0; i < detail::kRegisters; ++i)
    std::memcpy(to + i * detail::kLanes, &x.part[i], sizeof x.part[i]);
}

/// The first `count` of them, 1 to kSimdWidth; the others are 0, or stay as they are in memory.
inline Simd load(const real* from, Index count) {
  if (count == kSimdWidth) return load(from);
  Simd x;
  std::memcpy(x.part, from, static_cast<size_t>(count) * sizeof(real));
  return x;
}
inline void store(const Simd& x, real* to, Index count) {
  if (count == kSimdWidth) return store(x, to);
  std::memcpy(to, x.part, static_cast<size_t>(count) * sizeof(real));
}
/// Calls f(first, count) for the vectors that n numbers make; the last may be shorter.
template <class F>
void for_each_vector(Index n, F&& f) {
  Index i = 0;
  for (; i + kSimdWidth <= n; i += kSimdWidth) f(i, kSimdWidth);
  if (i < n) f(i, n - i);
}

/// Element i is f(i).
template <class Element, class F>
Vector<Element> vector_of(F&& f) {
  Element elements[kSimdWidth];
  for (Index i = 0; i < kSimdWidth; ++i) elements[i] = f(i);
  Vector<Element> x;
  std::memcpy(x.part, elements, sizeof x);
  return x;
}

namespace detail {
/// f of both halves of the first 2 `half` registers, of their halves, and so on.
template <size_t half = kRegisters / 2, class F>
DIFFTAPE_INLINE Simd::Register folded_registers(Simd x, F&& f) {
  if constexpr (half == 0) {
    return x.part[0];
  } else {
    for (size_t i = 0; i < half; ++i) x.part[i] = f(x.part[i], x.part[i + half]);
    return folded_registers<half / 2>(x, f);
  }
}

/// Rotated: element i holds what was in element i + distance.
template <size_t distance, size_t... lane>
DIFFTAPE_INLINE Simd::Register rotated(const Simd::Register& x, std::index_sequence<lane...>) {
  return __builtin_shufflevector(x, x, static_cast<int>((lane + distance) % kLanes)...);
}

template <size_t half = kLanes / 2, class F>
DIFFTAPE_INLINE real folded_lanes(const Simd::Register& x, F&& f) {
  if constexpr (half == 0) {
    return x[0];
  } else {
    return folded_lanes<half / 2>(f(x, rotated<half>(x, std::make_index_sequence<kLanes>())), f);
  }
}

/// f of both halves of the elements, of their halves, and so on, down to one number.
template <class F>
DIFFTAPE_INLINE real folded(const Simd& x, F&& f) {
  return folded_lanes(folded_registers(x, f), f);
}
}  // namespace detail

/// Sum of the elements, by halves.
inline real sum(const Simd& x) {
  return detail::folded(x, [](const auto& a, const auto& b) { return a + b; });
}

/// Largest element; what it is if one is NaN is not specified.
inline real largest(const Simd& x) {
  return detail::folded(x, [](const auto& a, const auto& b) { return b > a ? b : a; });
}

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
DIFFTAPE_INLINE Simd exp_horner(const Simd& f, Simd sum_so_far) {
  sum_so_far = fma(sum_so_far, f, inverse_factorial(k));
  if constexpr (k == last) {
    return sum_so_far;
  } else {
    return exp_horner<k - 1, last>(f, sum_so_far);
  }
}

}  // namespace detail

/// exp(x) of each element for x <= 1, to within two units of the last digit; 0 where the result
/// would be below the smallest normal number, NaN for NaN (Cody & Waite 1980, chapter 6).
DIFFTAPE_INLINE Simd exp_simd(const Simd& x) {
  constexpr const detail::ExpConstants& c = detail::kExp;
  const Simd bounded = select(x < c.lowest, c.lowest, x);
  const Simd shifted = fma(bounded, static_cast<real>(1.4426950408889634074), c.shift);
  const Simd n = shifted - c.shift;
  const Simd f = fma(n, -c.ln2_low, fma(n, -c.ln2_high, bounded));
  const Simd power = detail::exp_horner<c.degree - 1>(f, detail::inverse_factorial(c.degree));
  const SimdInts exponent =
      (std::bit_cast<SimdInts>(shifted) << c.mantissa_bits) + (SimdInt{c.bias} << c.mantissa_bits);
  const Simd result = power * std::bit_cast<Simd>(exponent);
  return select(x < c.lowest, Simd(), result);
}

/// 1 / (1 + exp(-x)) of each element; exp never overflows.
DIFFTAPE_INLINE Simd sigmoid_simd(const Simd& x) {
  const Simd small = exp_simd(select(x < 0, x, -x)), of_positive = 1 / (1 + small);
  return select(x < 0, small * of_positive, of_positive);
}

/// tanh(x) of each element, to within a few units of the last digit; NaN for NaN. With
/// m = exp(-2 |x|) - 1, which near 0 is the series of exp without its 1, |tanh(x)| = -m / (2 + m).
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
