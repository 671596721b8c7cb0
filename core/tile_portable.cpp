// Tiles in portable vectors: each element of C is one chain of fused multiply-adds.
#include "core/tile_registers.h"

namespace difftape::tile {

namespace {

struct Reals : PlainMemory {
  using Element = real;
  static constexpr Index kSums = kMostSums;
  static DIFFTAPE_INLINE Register left(const real* a) { return *a - Register{}; }
  static DIFFTAPE_INLINE Register right(const real* b, size_t count) {
    return load<Register>(b, count);
  }
  static DIFFTAPE_INLINE Register sum(const Register& left, const Register& right,
                                      const Register& so_far) {
    return detail::fused(left, right, so_far);
  }
  static DIFFTAPE_INLINE Register scaled(const Register& sum, real /*factor*/) { return sum; }
};

void multiply(const Kernel& kernel, const real* a, const real* b, real* c) {
  const tile::Product& p = kernel.shape;
  InRegisters<Reals>::multiply({.a = a,
                                .b = b,
                                .c = c,
                                .m = p.m,
                                .n = p.n,
                                .k = p.k,
                                .a_row = p.a_transposed ? 1 : p.a_stride,
                                .a_inner = p.a_transposed ? p.a_stride : 1,
                                .b_stride = p.b_stride,
                                .c_stride = p.c_stride,
                                .add = p.add});
}

}  // namespace

const Backend* portable_backend() {
  static const Backend backend{"portable", [](const Product& p) { return Kernel{p, multiply}; }};
  return &backend;
}

}  // namespace difftape::tile
