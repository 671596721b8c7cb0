#pragma once
// Libraries and own loops that multiply one tile of a matrix product, serially
// (core/gemm_backend.h chooses the library).

#include <string_view>

#include "core/precision.h"
#include "core/real.h"

namespace difftape::tile {

/// C (m x n) = or += A (m x k) B (k x n). B and C are row-major; A is row-major or, if
/// `a_transposed`, stored k x m. n is at most kPanel; strides are in elements.
struct Product {
  Index m, n, k;
  Index a_stride, b_stride, c_stride;
  bool a_transposed;
  bool add;
  bool operator==(const Product&) const = default;
  /// Spreads the sizes over all bits (Knuth 1973, Fibonacci hashing).
  std::uint64_t hash() const {
    const auto at = [](Index number, int shift) { return std::uint64_t(number) << shift; };
    const std::uint64_t sizes =
        at(m, 0) + at(n, 9) + at(k, 18) + at(a_stride, 27) + at(b_stride, 36) + at(c_stride, 45);
    return (sizes ^ at(a_transposed, 62) ^ at(add, 61)) * 0x9e3779b97f4a7c15;
  }
};

/// The code for one shape of tile. A look-up costs as much as a small tile, so it is done once for
/// many tiles. Only the thread that looked it up may use it.
struct Kernel {
  Product shape;
  void (*run)(const Kernel& self, const real* a, const real* b, real* c) = nullptr;
  void* generated = nullptr;  ///< machine code for `run`
  void operator()(const real* a, const real* b, real* c) const { run(*this, a, b, c); }
};

struct Backend {
  const char* name;
  Kernel (*kernel)(const Product& shape);
};

/// Returns libxsmm, or nullptr if it is not compiled in or cannot generate code for this processor.
const Backend* libxsmm_backend();
/// Returns loops that give the same bits on every processor with fused multiply-add (core/simd.h).
const Backend* portable_backend();

/// C (m x n) = or += factor A (m x k) B (k x n), for operands that are read with any strides.
/// Element (i, j) of A is a[i * a_row + j * a_inner]; rows of B and C are b_stride and c_stride
/// apart. With `add`, the factor must be 1.
template <class Element>
struct StridedProduct {
  const Element *a, *b;
  real* c;
  Index m, n, k;
  Index a_row, a_inner, b_stride, c_stride;
  bool add;
  real factor = 1;
};
/// Elements are words of two bfloat16s, neighbors along k: the first in the lower half. Each
/// element of C is one chain of sums.
using PairProduct = StridedProduct<std::uint32_t>;
/// How pairs are made and multiplied.
struct PairBackend {
  void (*multiply)(const PairProduct& p);
  /// Rounds two rows of n elements, a multiple of kSimdWidth. Writes them as pairs (n words) and as
  /// rows; each may be null.
  void (*round)(const real* first, const real* second, Index n, std::uint32_t* pairs,
                std::uint16_t* first_row, std::uint16_t* second_row);
};
/// Returns loops that give the same bits on every processor.
const PairBackend* portable_pairs();
/// Returns the units of AVX512-BF16, or nullptr if this processor or program has none. They have
/// the bits of the loops, but take subnormals for 0.
const PairBackend* avx512_bf16_pairs();

/// The loops that round and multiply pairs in one call; null multiplies in full precision.
using Pairs = const PairBackend*;
/// Returns the loops of a precision.
Pairs pairs_of(Precision precision);

/// Returns the backend "libxsmm" or "portable". Throws UsageError if it is not available.
const Backend* backend_by_name(std::string_view name);
/// Returns the backend in use for tiles of `real`.
const Backend& backend();

}  // namespace difftape::tile
