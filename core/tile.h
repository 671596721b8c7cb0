#pragma once
// The engines behind core/gemm: one serial product of a tile.

#include "core/real.h"

namespace difftape::tile {

/// C (m x n) = or += A (m x k) B (k x n). B and C are row-major; A is row-major or, if
/// `a_transposed`, stored k x m. n is at most kPanel; strides are in elements.
struct Product {
  Index m, n, k;
  Index a_stride, b_stride, c_stride;
  bool a_transposed;
  bool add;
};

/// The code for one shape of product; looking it up costs as much as a small tile, so it is done
/// once for many tiles.
struct Kernel {
  Product shape;
  void (*run)(const Kernel& self, const real* a, const real* b, real* c);
  void (*generated)() = nullptr;  ///< the machine code behind `run`, if there is any
  void operator()(const real* a, const real* b, real* c) const { run(*this, a, b, c); }
};

struct Engine {
  const char* name;
  Kernel (*kernel)(const Product& shape);
};

/// libxsmm, or nullptr where it is not compiled in or generates no code for this processor.
const Engine* libxsmm_engine();
const Engine* eigen_engine();

/// The engine in use.
const Engine& engine();

}  // namespace difftape::tile
