#pragma once
// The libraries that multiply one tile of a matrix product, serially (core/gemm_backend.h chooses).

#include <string_view>

#include "core/real.h"

namespace difftape::tile {

/// C (m x n) = or += A (m x k) B (k x n). B and C are row-major; A is row-major or, if
/// `a_transposed`, stored k x m. n is at most kPanel; strides are in elements.
///
/// For bfloat16, A is row-major and dense, a_stride = k, a multiple of kBf16Inner; B is a panel in
/// pairs, element (i, j) at (i / 2 * b_stride + j) * 2 + i % 2.
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

/// The inner size of bfloat16 tiles is padded with zeros to a multiple of this.
inline constexpr Index kBf16Inner = 32;

/// The code for one shape of tile. A look-up costs as much as a small tile, so it is done once for
/// many tiles. Only the thread that looked it up may use it.
struct Kernel {
  Product shape;
  void (*run)(const Kernel& self, const void* a, const void* b, real* c) = nullptr;
  void* generated = nullptr;  ///< machine code or a primitive for `run`
  void operator()(const void* a, const void* b, real* c) const { run(*this, a, b, c); }
};

struct Backend {
  const char* name;
  Kernel (*kernel)(const Product& shape);
};

/// Returns libxsmm, or nullptr if it is not compiled in or cannot generate code for this processor.
const Backend* libxsmm_backend();
/// Returns loops that give the same bits on every processor with fused multiply-add (core/simd.h).
const Backend* portable_backend();

/// Return the backends for bfloat16 tiles: oneDNN on processors with AMX, libxsmm with AVX512-BF16;
/// nullptr if unavailable.
const Backend* bf16_backend();
const Backend* onednn_bf16_backend();
const Backend* libxsmm_bf16_backend();

/// Plain loops for shapes without a bfloat16 kernel.
Kernel bf16_loop(const Product& shape);

/// Returns the backend "libxsmm" or "portable". Throws UsageError if it is not available.
const Backend* backend_by_name(std::string_view name);
/// Returns the backend in use for tiles of `real`.
const Backend& backend();

}  // namespace difftape::tile
