#pragma once
// Vectors of 64 bytes, for loops that Eigen cannot fuse. They take as many registers as a processor
// needs, so no sum depends on the width of a register. Arithmetic is element-wise. Only fma rounds
// a product and a sum together: the compiler is told to fuse none.

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

// All functions here are inlined, so the ABI of vector arguments does not matter.
#pragma GCC diagnostic ignored "-Wpsabi"
#define DIFFTAPE_INLINE __attribute__((always_inline)) inline

namespace difftape {

inline constexpr Index kSimdWidth = 64 / sizeof(real);

namespace detail {
#if defined(DIFFTAPE_REGISTER_BYTES)  // narrower ones, to test that width does not matter
inline constexpr size_t kRegisterBytes = DIFFTAPE_REGISTER_BYTES;
#elif defined(__AVX512F__)
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

/// kSimdWidth elements; comparisons give -1 for true and 0 for false.
template <class Element>
struct Vector {
  using Register = typename detail::RegisterOf<Element>::type;
  Register part[detail::kRegisters];

  Vector() : part{} {}
  DIFFTAPE_INLINE Vector(Element x) : Vector([x](size_t) { return x - Register{}; }) {}
  /// Makes register i from f(i).
  template <class F>
  requires std::is_invocable_v<F, size_t> DIFFTAPE_INLINE explicit Vector(F&& f)
      : Vector(f, detail::EachRegister()) {}

  Element operator[](Index i) const {
    return part[size_t(i) / detail::kLanes][size_t(i) % detail::kLanes];
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

/// Returns a where `condition` holds, b elsewhere.
DIFFTAPE_INLINE Simd select(const SimdInts& condition, const Simd& a, const Simd& b) {
  return Simd([&](size_t i) { return condition.part[i] ? a.part[i] : b.part[i]; });
}

/// True if fma rounds once on the target processor.
#if defined(__FMA__) || defined(__aarch64__)
inline constexpr bool kFma = true;
#else
inline constexpr bool kFma = false;
#endif

namespace detail {
#if defined(__FMA__)
// Overloads by element and size; 512 bits need AVX-512.
DIFFTAPE_INLINE __m128 fused(__m128 a, __m128 b, __m128 c) { return _mm_fmadd_ps(a, b, c); }
DIFFTAPE_INLINE __m128d fused(__m128d a, __m128d b, __m128d c) { return _mm_fmadd_pd(a, b, c); }
DIFFTAPE_INLINE __m256 fused(__m256 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(a, b, c); }
DIFFTAPE_INLINE __m256d fused(__m256d a, __m256d b, __m256d c) { return _mm256_fmadd_pd(a, b, c); }
#if defined(__AVX512F__)
DIFFTAPE_INLINE __m512 fused(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
DIFFTAPE_INLINE __m512d fused(__m512d a, __m512d b, __m512d c) { return _mm512_fmadd_pd(a, b, c); }
#endif
#elif defined(__aarch64__)
DIFFTAPE_INLINE float32x4_t fused(float32x4_t a, float32x4_t b, float32x4_t c) {
  return vfmaq_f32(c, a, b);
}
DIFFTAPE_INLINE float64x2_t fused(float64x2_t a, float64x2_t b, float64x2_t c) {
  return vfmaq_f64(c, a, b);
}
#else
DIFFTAPE_INLINE Simd::Register fused(Simd::Register a, Simd::Register b, Simd::Register c) {
  return a * b + c;
}
#endif
}  // namespace detail

/// Returns a b + c, rounded once if kFma.
DIFFTAPE_INLINE Simd fma(const Simd& a, const Simd& b, const Simd& c) {
  return Simd(
      [&](size_t i) { return Simd::Register(detail::fused(a.part[i], b.part[i], c.part[i])); });
}

/// Load and store kSimdWidth elements at any address.
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

/// Load and store the first `count` elements, 1 to kSimdWidth; load gives 0 for the others.
inline Simd load(const real* from, Index count) {
  if (count == kSimdWidth) return load(from);
  Simd x;
  std::memcpy(x.part, from, count * sizeof(real));
  return x;
}
inline void store(const Simd& x, real* to, Index count) {
  if (count == kSimdWidth) return store(x, to);
  std::memcpy(to, x.part, count * sizeof(real));
}
/// Calls f(first, count) for the vectors of n elements; the last may be shorter.
template <class F>
void for_each_vector(Index n, F&& f) {
  Index i = 0;
  for (; i + kSimdWidth <= n; i += kSimdWidth) f(i, kSimdWidth);
  if (i < n) f(i, n - i);
}

/// Makes element i from f(i).
template <class Element, class F>
Vector<Element> vector_of(F&& f) {
  Element elements[kSimdWidth];
  for (Index i = 0; i < kSimdWidth; ++i) elements[i] = f(i);
  Vector<Element> x;
  std::memcpy(x.part, elements, sizeof x);
  return x;
}

namespace detail {
/// Reduces the first 2 `half` registers by f in halves.
template <size_t half = kRegisters / 2, class F>
DIFFTAPE_INLINE Simd::Register folded_registers(Simd x, F&& f) {
  if constexpr (half == 0) {
    return x.part[0];
  } else {
    for (size_t i = 0; i < half; ++i) x.part[i] = f(x.part[i], x.part[i + half]);
    return folded_registers<half / 2>(x, f);
  }
}

/// Rotates: element i becomes element i + distance.
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

/// Reduces all elements by f in halves.
template <class F>
DIFFTAPE_INLINE real folded(const Simd& x, F&& f) {
  return folded_lanes(folded_registers(x, f), f);
}
}  // namespace detail

/// Returns the sum, added in halves.
inline real sum(const Simd& x) {
  return detail::folded(x, [](const auto& a, const auto& b) { return a + b; });
}

/// Returns the largest element; unspecified if one is NaN.
inline real largest(const Simd& x) {
  return detail::folded(x, [](const auto& a, const auto& b) { return b > a ? b : a; });
}

/// Returns the multiple of kSimdWidth that holds n elements.
constexpr Index round_up_to_width(Index n) { return round_up(n, kSimdWidth); }

}  // namespace difftape
