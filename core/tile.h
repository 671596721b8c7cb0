#pragma once
// The libraries that multiply one tile of a matrix product, serially (core/gemm_backend.h chooses).

#include "core/real.h"

namespace difftape::tile {

/// C (m x n) = or += A (m x k) B (k x n). B and C are row-major; A is row-major or, if
/// `a_transposed`, stored k x m. n is at most kPanel; strides are in elements.
///
/// For a backend of bfloat16 tiles A is row-major and B is a panel in pairs, element (i, j) at
/// (i / 2 * b_stride + j) * 2 + i % 2, both bfloat16; k is a multiple of kBf16Inner.
struct Product {
  Index m, n, k;
  Index a_stride, b_stride, c_stride;
  bool a_transposed;
  bool add;
  bool operator==(const Product&) const = default;
};

/// What the inner size of bfloat16 tiles is padded to, with zeros.
inline constexpr Index kBf16Inner = 32;

/// The code for one shape of product; looking it up costs as much as a small tile, so it is done
/// once for many tiles. To be used by the thread that looked it up.
struct Kernel {
  Product shape;
  void (*run)(const Kernel& self, const void* a, const void* b, real* c) = nullptr;
  void* generated = nullptr;  ///< what `run` needs: machine code or a primitive
  void operator()(const void* a, const void* b, real* c) const { run(*this, a, b, c); }
};

struct Backend {
  const char* name;
  Kernel (*kernel)(const Product& shape);
};

/// libxsmm, or nullptr where it is not compiled in or generates no code for this processor.
const Backend* libxsmm_backend();
/// The same bits on every processor with fused multiply-add (core/simd.h).
const Backend* portable_backend();

/// bfloat16 tiles: oneDNN on processors with AMX, libxsmm on those with AVX512-BF16; nullptr where
/// neither is possible. `onednn_bf16_backend` and `libxsmm_bf16_backend` are the two.
const Backend* bf16_backend();
const Backend* onednn_bf16_backend();
const Backend* libxsmm_bf16_backend();

/// Plain loops, for shapes that a backend of bfloat16 has no code for.
Kernel bf16_loop(const Product& shape);

/// The backend in use for tiles of `real`.
const Backend& backend();

}  // namespace difftape::tile
