// Tiles in portable vectors: each element of C is one chain of fused multiply-adds over k, in
// order, on every processor. Processors differ only in how many elements they work on at once.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/simd.h"
#include "core/tile.h"

namespace difftape::tile {

namespace {

using Register = Simd::Register;
using detail::kRegisterBytes;
constexpr Index kLanes = detail::kLanes;

// Registers for sums, besides those for A and B, and the most of them in a row of C.
#if defined(__aarch64__)
constexpr Index kSums = 24, kWide = 4;
#else
constexpr Index kSums = kRegisterBytes == 64   ? 24
                        : kRegisterBytes == 32 ? 12
                                               : 8,
                kWide = kRegisterBytes == 32 ? 2 : 4;
#endif

/// A tile: element (i, k) of A is a[i * a_row + k * a_inner].
struct Tile {
  const Product& shape;
  const real *a, *b;
  real* c;
  Index a_row, a_inner;
};

/// Some columns of C as registers: register i starts at column first + i * kLanes, but the last one
/// at `last`, so that it may overlap the one before. If C has fewer columns than a register,
/// `count` of its elements are used.
struct Columns {
  Index first, last, count;
};

/// Multiplies rows [row, row + rows) of some columns.
template <Index rows, Index registers, bool whole>
void multiply_registers(const Tile& tile, Index row, const Columns& columns) {
  const Product& p = tile.shape;
  const auto bytes = whole ? sizeof(Register) : size_t(columns.count) * sizeof(real);
  const auto at = [&](Index i) {
    return i + 1 < registers ? columns.first + i * kLanes : columns.last;
  };
  const auto get = [&](const real* from) {
    Register x{};
    std::memcpy(&x, from, bytes);
    return x;
  };
  const real *a = tile.a + row * tile.a_row, *b = tile.b;
  real* c = tile.c + row * p.c_stride;
  Register sums[rows][registers];
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < registers; ++j)
      sums[i][j] = p.add ? get(c + i * p.c_stride + at(j)) : Register{};
  for (Index k = 0; k < p.k; ++k, a += tile.a_inner, b += p.b_stride) {
    Register right[registers];
    for (Index j = 0; j < registers; ++j) right[j] = get(b + at(j));
    for (Index i = 0; i < rows; ++i) {
      const Register left = a[i * tile.a_row] - Register{};
      for (Index j = 0; j < registers; ++j) sums[i][j] = detail::fused(left, right[j], sums[i][j]);
    }
  }
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < registers; ++j)
      std::memcpy(c + i * p.c_stride + at(j), &sums[i][j], bytes);
}

using Multiply = void (*)(const Tile&, Index row, const Columns&);

/// multiply_registers for 1, 2, ... rows.
template <Index registers, bool whole>
constexpr auto kByRows = []<Index... rows>(std::integer_sequence<Index, rows...>) {
  return std::array<Multiply, sizeof...(rows)>{multiply_registers<rows + 1, registers, whole>...};
}
(std::make_integer_sequence<Index, kSums / registers>());

/// Multiplies all rows, in groups as even as possible, to keep enough independent sums.
template <Index registers, bool whole>
void multiply_columns(const Tile& tile, const Columns& columns) {
  const Index m = tile.shape.m, groups = ceil_div(m, kSums / registers);
  for (Index group = 0, row = 0; group < groups; ++group) {
    const Index rows = m / groups + (group < m % groups ? 1 : 0);
    kByRows<registers, whole>[rows - 1](tile, row, columns);
    row += rows;
  }
}

constexpr auto kByRegisters = []<Index... more>(std::integer_sequence<Index, more...>) {
  return std::array{multiply_columns<more + 1, true>...};
}
(std::make_integer_sequence<Index, kWide>());

void multiply(const Kernel& kernel, const void* a, const void* b, real* c) {
  const Product& p = kernel.shape;
  const Tile tile{p, static_cast<const real*>(a),     static_cast<const real*>(b),
                  c, p.a_transposed ? 1 : p.a_stride, p.a_transposed ? p.a_stride : 1};
  if (p.n < kLanes) return multiply_columns<1, false>(tile, {0, 0, p.n});
  const bool overlaps = p.n % kLanes != 0;
  for (Index done = 0, all = ceil_div(p.n, kLanes); done < all;) {
    Index registers = std::min(kWide, all - done);
    // Keep the overlapping register with the one before it: both read C before either writes.
    if (overlaps && all - done - registers == 1) --registers;
    kByRegisters[registers - 1](
        tile, {done * kLanes, std::min((done + registers - 1) * kLanes, p.n - kLanes), 0});
    done += registers;
  }
}

}  // namespace

const Backend* portable_backend() {
  static const Backend backend{"portable", [](const Product& p) { return Kernel{p, multiply}; }};
  return &backend;
}

}  // namespace difftape::tile
