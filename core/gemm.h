#pragma once
// All matrix products go through here, except those of attention in bfloat16. A product is cut into
// 64-wide tiles over packed panels. Each tile of C has one owner and one order of summation, so
// results do not depend on threads. core/gemm_backend.h chooses the library that multiplies the
// tiles.

#include <span>

#include "core/precision.h"
#include "core/tensor.h"

namespace difftape {

/// Read-only matrix of rows x cols: element (i, j) is data[i * stride + j], or, if `transposed`,
/// data[j * stride + i].
struct Operand {
  const real* data;
  Index rows, cols, stride;
  bool transposed = false;
  /// The elements as bits of bfloat16 in place of `data`; only for products that round.
  const std::uint16_t* bf16 = nullptr;
};
inline Operand matrix(const real* data, Index rows, Index cols) {
  return {data, rows, cols, cols, false};
}
/// All rows of the last axis of a tensor.
inline Operand matrix(const Tensor& x) {
  return matrix(x.data(), x.shape().rows(), x.shape().last());
}
/// Returns the transposed view; moves nothing.
inline Operand transpose(const Operand& m) {
  return {m.data, m.cols, m.rows, m.stride, !m.transposed, m.bf16};
}

/// Computes C = A B, or C += A B, on all threads, with C[i * stride + j]. The inner sizes must
/// agree; an empty one gives zeros. C must not overlap A or B.
void gemm(const Operand& a, const Operand& b, real* c, Index c_stride, Accumulate accumulate,
          Precision precision = Precision::full);
/// Computes C = residual + A B. The residual has the stride of C and does not overlap it.
void gemm_with_residual(const real* residual, const Operand& a, const Operand& b, real* c,
                        Index c_stride, Precision precision = Precision::full);

/// One of several products: C = A B, or C += A B, with C[i * stride + j].
struct GemmProduct {
  Operand a, b;
  real* c;
  Index c_stride;
  Accumulate accumulate = Accumulate::no;
};
/// Computes products with distinct C on all threads, as one list of tasks and with the bits of
/// gemm. The size of the scratch memory depends on sums over the products only, not on how rows are
/// divided among them.
void gemm_group(std::span<const GemmProduct> products, Precision precision = Precision::full);

/// Columns of one panel, the width of a tile of C.
inline constexpr Index kPanel = sizeof(real) == 4 ? 64 : 32;

/// Computes one small product on the calling thread, for kernels that cut their own blocks: C (m x
/// n) = or += A (m x k) B (k x n). B is row-major with `b_stride`, A row-major or transposed. Any
/// sizes; a long k runs in chunks of a fixed length.
void tile_gemm(const Operand& a, const real* b, Index b_stride, Index n, real* c, Index c_stride,
               Accumulate accumulate);

}  // namespace difftape
