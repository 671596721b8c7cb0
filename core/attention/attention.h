#pragma once
// Fused causal attention with one or two softmax maps per output head. With A1, A2 the maps and W =
// A1 - lambda A2, the output is one product W V. Nothing of size T x T is stored: backward
// recomputes the maps from their row statistics (Dao 2023, FlashAttention-2).
//
// Letters: B batch, T sequence, D head size of q and k, E head size of v, M maps.

#include <cmath>
#include <vector>

#include "core/attention/heads.h"
#include "core/attention/rounded.h"
#include "core/attention/visibility.h"
#include "core/precision.h"
#include "core/tensor.h"

namespace difftape {

/// Returns the usual scale of q k^T, 1 / sqrt(D).
inline double attention_scale(Index head_dim) {
  return 1 / std::sqrt(static_cast<double>(head_dim));
}

/// One attention call, of tensors or of values on a tape (autograd/ops.h). A default-constructed
/// operand is absent.
template <class Operand>
struct BasicAttentionInputs {
  HeadMapping mapping;  ///< the heads of each output head
  Operand q;            ///< (B, T, query_heads, D)
  Operand k;            ///< (B, T, key_heads, D)
  Operand v;            ///< (B, T, value_heads, E)
  Operand lambda{};     ///< () or (B, T, output heads); absent with one map
  /// (query_heads), an extra logit in every softmax whose probability is discarded (gpt-oss 2025;
  /// zeros: Miller 2023, "off by one"); may be absent.
  Operand sinks{};
  double scale = 0;  ///< multiplies q k^T; must be set (attention_scale), 0 is an error
  Visibility visible{};
  BlockSparsity blocks{};
  /// c: scaled scores become c tanh(score / c) before masks and sinks (Gemma Team 2024, "Gemma 2");
  /// 0: no cap.
  double logit_softcap = 0;
  /// Unless full, q, k, v, dout, the maps and their gradients are rounded to bfloat16 where they
  /// enter a product.
  Precision precision = Precision::full;
};
using AttentionInputs = BasicAttentionInputs<Tensor>;

/// The output (B, T, output heads, E) and the statistics of each softmax row, (B, output heads, M,
/// T, 2): its largest scaled, capped score (or sink), and the reciprocal of its sum of exp(score -
/// max). Backward computes the maps again from both.
struct AttentionOutputs {
  Tensor out;
  Tensor softmax_stats;
  RoundedInputs rounded{};  ///< allocated unless the precision is full
};
/// Throws ShapeError if the operands do not fit the mapping or each other.
AttentionOutputs attention_forward(const AttentionInputs& in);

/// Returns the largest statistic of each query head, (query_heads): its largest visible logit, or
/// its sink if that is larger.
std::vector<real> largest_logits(const HeadMapping& mapping, const Tensor& softmax_stats);

/// Memory for the gradients. dq, dk and dv are distinct, and overwritten or added to; dlambda and
/// dsinks are overwritten if allocated.
struct AttentionGradients {
  Tensor dq, dk, dv;
  Tensor dlambda{};  ///< (B, T, output heads)
  Tensor dsinks{};   ///< (B, T, query_heads)
  Accumulate accumulate_q = Accumulate::no, accumulate_k = Accumulate::no,
             accumulate_v = Accumulate::no;
};
/// Returns the number of parts into which backward cuts the work on one sequence and group of heads
/// if batch and groups are too few for many threads. Each part has its own gradients of keys and
/// values, which are added up at the end. Depends on the sizes alone.
Index attention_backward_parts(const HeadMapping& mapping, Index batch, Index seq);

/// Computes for each head: dA = dO V^T, r_m = rowsum(A_m o dA), dV = W^T dO, dS1 = A1 o (dA - r1),
/// dS2 = -lambda A2 o (dA - r2), dQ_m = scale dS_m K_m, dK_m = scale dS_m^T Q_m, dlambda = -r2
/// (Differential Transformer, Appendix G, equation 7). With p the probability of a sink, dsink1 =
/// -p1 r1 and dsink2 = lambda p2 r2. A soft cap multiplies dS_m by its slope. Reads the statistics
/// and rounded operands of forward, but not its output. `in` is that of forward; with rounded
/// operands, in.q, in.k and in.v may be absent. Throws ShapeError as forward does, and if the
/// precision is another.
void attention_backward(const AttentionInputs& in, const AttentionOutputs& forward,
                        const Tensor& dout, AttentionGradients& gradients);

}  // namespace difftape
