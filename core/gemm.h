#pragma once
// The one door to matrix products. A product is cut into 64-wide tiles over packed panels; each
// tile of C has one owner and one order of summation, so results do not depend on threads. The
// tiles run on libxsmm (kernels generated at run time) or, where it is missing, on Eigen; those of
// bfloat16 on oneDNN or libxsmm.

#include <string>
#include <vector>

#include "core/real.h"

namespace difftape {

/// Read-only matrix of rows x cols: element (i, j) is data[i * stride + j], or, if `transposed`,
/// data[j * stride + i].
struct Operand {
  const real* data;
  Index rows, cols, stride;
  bool transposed = false;
};
inline Operand matrix(const real* data, Index rows, Index cols) {
  return {data, rows, cols, cols, false};
}
/// The transpose of a matrix view, without moving anything.
inline Operand transpose(const Operand& m) {
  return {m.data, m.cols, m.rows, m.stride, !m.transposed};
}

/// What happens to the previous contents of the output.
enum class Into { overwrite, add };

/// What the operands of a product are rounded to first; products are summed as `real` in any case
/// (Micikevicius et al. 2018).
enum class Precision {
  full,           ///< nothing
  bf16,           ///< bfloat16, multiplied by the processor's own units
  bf16_emulated,  ///< bfloat16, multiplied as `real`: the same rounding on every machine
};
/// What the configuration calls them, in this order.
std::vector<std::string> precision_words();
/// Throws std::out_of_range for any other word.
Precision precision_named(const std::string& word);
/// Why `precision` cannot be had here: one sentence, empty if it can.
std::string obstacle_to(Precision precision);

/// C = A B, or C += A B, with C[i * stride + j]. All threads. The inner sizes must agree.
/// An empty inner size gives zeros. C must not overlap A or B.
void gemm(const Operand& a, const Operand& b, real* c, Index c_stride, Into into,
          Precision precision = Precision::full);
/// C = addend + A B, where the addend lies like C and does not overlap it.
void gemm_onto(const real* addend, const Operand& a, const Operand& b, real* c, Index c_stride,
               Precision precision = Precision::full);

/// Columns of one panel, the width of a tile of C.
inline constexpr Index kPanel = sizeof(real) == 4 ? 64 : 32;

/// Packs B (K x N) into ceil(N / kPanel) panels, each K x kPanel and row-major, zero-filled beyond
/// N: the layout in which tiles read their right operand. `panels` holds packed_size(K, N).
void pack_panels(const Operand& b, real* panels);
constexpr Index packed_size(Index k, Index n) { return (n + kPanel - 1) / kPanel * kPanel * k; }

/// One small product on the calling thread: C (m x n) = or += A (m x k) B (k x n), where B is
/// row-major with `b_stride`, A is row-major or transposed. For kernels that cut their own blocks.
/// Any sizes; k beyond 512 runs in chunks of a fixed length.
void tile_gemm(const Operand& a, const real* b, Index b_stride, Index n, real* c, Index c_stride,
               Into into);

/// What multiplies tiles of bfloat16 here, "" if nothing does.
std::string bf16_engine_name();

/// What multiplies tiles here: "libxsmm 1.17 (cpx)" or "Eigen". Throws UsageError if DIFFTAPE_GEMM
/// in the environment names an engine that is not available; programs call it before anything else.
const char* gemm_engine();

/// Chooses the engine by name, "libxsmm" or "eigen"; DIFFTAPE_GEMM in the environment sets the
/// initial one. Throws UsageError for an engine that is not available here.
void set_gemm_engine(const char* name);

}  // namespace difftape
