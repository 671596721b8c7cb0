#pragma once
// Tiles of C in registers, with the arithmetic of the file that includes this one. Each element of
// C is one chain of sums over k, in order, on every processor. Processors differ only in how many
// elements they work on at once.
//
// An arithmetic has kSums, the sums that it keeps in registers; Element, the type of A and B, and
// left(), right() and sum(): what it needs of an element of A for all lanes, of a register of B,
// and the sum with their product; scaled(), the sum times the factor; and load() and store().

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/simd.h"
#include "core/tile.h"

namespace difftape::tile {

using Register = Simd::Register;

// Registers for sums, besides those for A and B, and the most of them in a row of C.
#if defined(__aarch64__)
inline constexpr Index kMostSums = 24, kWide = 4;
#else
inline constexpr Index kMostSums = detail::kRegisterBytes == 64   ? 24
                                   : detail::kRegisterBytes == 32 ? 12
                                                                  : 8,
                       kWide = detail::kRegisterBytes == 32 ? 2 : 4;
#endif

/// Loads and stores the first `count` elements of a register.
struct PlainMemory {
  template <class Loaded, class Element>
  static DIFFTAPE_INLINE Loaded load(const Element* from, size_t count) {
    Loaded x{};
    std::memcpy(&x, from, count * sizeof *from);
    return x;
  }
  static DIFFTAPE_INLINE void store(const Register& x, real* to, size_t count) {
    std::memcpy(to, &x, count * sizeof *to);
  }
};

/// Some columns of C as registers: register i starts at column first + i * kLanes, but the last one
/// at `last`, so that it may overlap the one before. If C has fewer columns than a register,
/// `count` of its elements are used.
struct Columns {
  Index first, last, count;
};

/// Multiplies in groups of rows and columns of C whose sums fit the registers.
template <class Arithmetic>
class InRegisters {
 public:
  using Element = typename Arithmetic::Element;
  using Product = StridedProduct<Element>;

  static void multiply(const Product& p) { p.add ? multiply_all<true>(p) : multiply_all<false>(p); }

 private:
  using Multiply = void (*)(const Product&, Index row, const Columns&);

  template <bool add>
  static void multiply_all(const Product& p) {
    constexpr Index kLanes = detail::kLanes;
    const Index n = p.n;
    if (n < kLanes) return multiply_columns<1, false, add>(p, {0, 0, n});
    const bool overlaps = n % kLanes != 0;
    for (Index done = 0, all = ceil_div(n, kLanes); done < all;) {
      Index registers = std::min(kWide, all - done);
      // Keep the overlapping register with the one before it: both read C before either writes.
      if (overlaps && all - done - registers == 1) --registers;
      kByRegisters<add>[registers - 1](
          p, {done * kLanes, std::min((done + registers - 1) * kLanes, n - kLanes), 0});
      done += registers;
    }
  }

  /// Multiplies rows [row, row + rows) of some columns.
  template <Index rows, Index registers, bool whole, bool add>
  static void multiply_registers(const Product& p, Index row, const Columns& columns) {
    constexpr Index kLanes = detail::kLanes;
    const auto count = whole ? size_t{kLanes} : static_cast<size_t>(columns.count);
    const auto at = [&](Index i) {
      return i + 1 < registers ? columns.first + i * kLanes : columns.last;
    };
    const Element *a = p.a + row * p.a_row, *b = p.b;
    real* c = p.c + row * p.c_stride;
    Register sums[rows][registers];
    // Unless all loops are unrolled, the compiler copies the sums through memory.
#pragma GCC unroll 24
    for (Index i = 0; i < rows; ++i)
#pragma GCC unroll 24
      for (Index j = 0; j < registers; ++j)
        sums[i][j] = add ? Arithmetic::template load<Register>(c + i * p.c_stride + at(j), count)
                         : Register{};
    for (Index k = 0; k < p.k; ++k, a += p.a_inner, b += p.b_stride) {
      decltype(Arithmetic::right(b, count)) right[registers];
#pragma GCC unroll 24
      for (Index j = 0; j < registers; ++j) right[j] = Arithmetic::right(b + at(j), count);
#pragma GCC unroll 24
      for (Index i = 0; i < rows; ++i) {
        const auto left = Arithmetic::left(a + i * p.a_row);
#pragma GCC unroll 24
        for (Index j = 0; j < registers; ++j)
          sums[i][j] = Arithmetic::sum(left, right[j], sums[i][j]);
      }
    }
#pragma GCC unroll 24
    for (Index i = 0; i < rows; ++i) {
#pragma GCC unroll 24
      for (Index j = 0; j < registers; ++j) {
        Arithmetic::store(Arithmetic::scaled(sums[i][j], p.factor), c + i * p.c_stride + at(j),
                          count);
      }
    }
  }

  /// multiply_registers for 1, 2, ... rows.
  template <Index registers, bool whole, bool add, Index... rows>
  static constexpr auto by_rows(std::integer_sequence<Index, rows...>) {
    return std::array<Multiply, sizeof...(rows)>{
        multiply_registers<rows + 1, registers, whole, add>...};
  }

  /// Multiplies all rows, in groups as even as possible, to keep enough independent sums.
  template <Index registers, bool whole, bool add>
  static void multiply_columns(const Product& p, const Columns& columns) {
    static constexpr auto kByRows = by_rows<registers, whole, add>(
        std::make_integer_sequence<Index, Arithmetic::kSums / registers>());
    const Index groups = ceil_div(p.m, Arithmetic::kSums / registers);
    for (Index group = 0, row = 0; group < groups; ++group) {
      const Index rows = p.m / groups + (group < p.m % groups ? 1 : 0);
      kByRows[rows - 1](p, row, columns);
      row += rows;
    }
  }

  template <bool add, Index... more>
  static constexpr auto by_registers(std::integer_sequence<Index, more...>) {
    return std::array{multiply_columns<more + 1, true, add>...};
  }
  template <bool add>
  static constexpr auto kByRegisters =
      by_registers<add>(std::make_integer_sequence<Index, kWide>());
};

}  // namespace difftape::tile
