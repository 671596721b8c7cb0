// Tiles in portable vectors: each element of C is one chain of fused multiply-adds over k, in
// order, on every processor. Processors differ only in how many elements they work on at once.
#include <array>
#include <utility>

#include "core/simd.h"
#include "core/tile.h"

namespace difftape::tile {

namespace {

// Rows and vectors of C whose sums fit the registers, besides registers for A and B.
#if defined(__aarch64__)
constexpr Index kRows = 6, kVectors = 1;
#else
constexpr Index kRows = detail::kRegisterBytes >= 32 ? 6 : 2,
                kVectors = detail::kRegisterBytes == 64 ? 4 : 1;
#endif

/// A tile or a part of it: element (i, k) of A is a[i * a_row + k * a_inner].
struct Part {
  const Product& shape;
  const real *a, *b;
  real* c;
  Index a_row, a_inner;
};

/// Multiplies `rows` rows of columns [first, first + vectors * kSimdWidth), or of `count` columns
/// if the only vector is partial.
template <Index rows, Index vectors, bool whole>
void multiply_vectors(const Part& part, Index row, Index first, Index count) {
  const Product& p = part.shape;
  const real *a = part.a + row * part.a_row, *b = part.b + first;
  real* c = part.c + row * p.c_stride + first;
  const auto get = [&](const real* from, Index vector) {
    return whole ? load(from + vector * kSimdWidth) : load(from, count);
  };
  Simd sums[rows][vectors];
  for (Index i = 0; i < rows; ++i)
    for (Index v = 0; v < vectors; ++v) sums[i][v] = p.add ? get(c + i * p.c_stride, v) : Simd();
  for (Index k = 0; k < p.k; ++k) {
    Simd right[vectors];
    for (Index v = 0; v < vectors; ++v) right[v] = get(b + k * p.b_stride, v);
    for (Index i = 0; i < rows; ++i) {
      const Simd left = a[i * part.a_row + k * part.a_inner];
      for (Index v = 0; v < vectors; ++v) sums[i][v] = fma(left, right[v], sums[i][v]);
    }
  }
  for (Index i = 0; i < rows; ++i) {
    for (Index v = 0; v < vectors; ++v) {
      real* to = c + i * p.c_stride + v * kSimdWidth;
      whole ? store(sums[i][v], to) : store(sums[i][v], to, count);
    }
  }
}

template <Index rows>
void multiply_rows(const Part& part, Index row) {
  const Index n = part.shape.n;
  Index first = 0;
  for (; first + kVectors * kSimdWidth <= n; first += kVectors * kSimdWidth)
    multiply_vectors<rows, kVectors, true>(part, row, first, 0);
  for (; first + kSimdWidth <= n; first += kSimdWidth)
    multiply_vectors<rows, 1, true>(part, row, first, 0);
  if (first < n) multiply_vectors<rows, 1, false>(part, row, first, n - first);
}

using MultiplyRows = void (*)(const Part&, Index row);

constexpr auto kByRows = []<Index... rows>(std::integer_sequence<Index, rows...>) {
  return std::array<MultiplyRows, kRows>{multiply_rows<rows + 1>...};
}
(std::make_integer_sequence<Index, kRows>());

void multiply(const Kernel& kernel, const void* a, const void* b, real* c) {
  const Product& p = kernel.shape;
  const Part part{p, static_cast<const real*>(a),     static_cast<const real*>(b),
                  c, p.a_transposed ? 1 : p.a_stride, p.a_transposed ? p.a_stride : 1};
  // as even as possible, to keep enough independent sums
  const Index groups = ceil_div(p.m, kRows);
  for (Index group = 0, row = 0; group < groups; ++group) {
    const Index rows = p.m / groups + (group < p.m % groups ? 1 : 0);
    kByRows[rows - 1](part, row);
    row += rows;
  }
}

}  // namespace

const Backend* portable_backend() {
  static const Backend backend{"portable", [](const Product& p) { return Kernel{p, multiply}; }};
  return &backend;
}

}  // namespace difftape::tile
