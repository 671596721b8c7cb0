#pragma once
// Causal attention with one or two softmax maps an output head, fused: with A1, A2 the maps and
// W = A1 - lambda A2, the output is one product W V. Nothing of size T x T is stored; backward
// recomputes the maps from their row statistics (Dao 2023, FlashAttention-2).
//
// Letters: B batch, T sequence, D head size of q and k, E head size of v, M maps.

#include <cmath>
#include <vector>

#include "core/attention/heads.h"
#include "core/attention/visibility.h"
#include "core/tensor.h"

namespace difftape {

/// The usual factor of q k^T.
inline double attention_scale(Index head_dim) {
  return 1 / std::sqrt(static_cast<double>(head_dim));
}

/// One attention call, of tensors or of values on a tape (autograd/ops.h). A default-constructed
/// operand is absent.
template <class Operand>
struct BasicAttentionInputs {
  HeadMapping mapping;  ///< which heads make an output head
  Operand q;            ///< (B, T, query_heads, D)
  Operand k;            ///< (B, T, key_heads, D)
  Operand v;            ///< (B, T, value_heads, E)
  Operand lambda{};     ///< () or (B, T, output heads); absent with one map
  /// (query_heads), an extra logit in every softmax whose probability goes nowhere (gpt-oss 2025;
  /// zeros: Miller 2023, "off by one"); may be absent.
  Operand sinks{};
  double scale = 1;  ///< multiplies q k^T
  Visibility visible{};
  /// c: scaled scores become c tanh(score / c) before masks and sinks join (Gemma Team 2024,
  /// "Gemma 2"); 0: they stay.
  double logit_softcap = 0;
  /// Rounds the maps and their gradients to bfloat16 where they enter a product; q, k, v and dout
  /// come rounded.
  bool round_maps = false;
};
using AttentionInputs = BasicAttentionInputs<Tensor>;

/// out (B, T, output heads, E), and of each row of each map its largest scaled, capped score (or
/// sink) and the reciprocal of its sum of exp(score - max), (B, output heads, M, T, 2): with both,
/// backward computes the attention maps again.
struct AttentionOutputs {
  Tensor out;
  Tensor softmax_stats;
};
/// Throws ShapeError if the operands do not fit the mapping or each other.
AttentionOutputs attention_forward(const AttentionInputs& in);

/// Returns the largest statistic of the rows of each query head, (query_heads): its largest visible
/// logit, or its sink if that is larger.
std::vector<real> largest_logits(const HeadMapping& mapping, const Tensor& softmax_stats);

/// The memory of the gradients of q, k and v (no two the same), overwritten or added to; those of
/// lambda and the sinks are overwritten if allocated.
struct AttentionGradients {
  Tensor dq, dk, dv;
  Tensor dlambda{};  ///< (B, T, output heads)
  Tensor dsinks{};   ///< (B, T, query_heads)
  Accumulate accumulate_q = Accumulate::no, accumulate_k = Accumulate::no,
             accumulate_v = Accumulate::no;
};
/// Returns the number of parts that backward cuts the work on one sequence and group of heads into,
/// where batch and groups are too few for many threads; with more than one, each has gradients of
/// all keys and values of its own until they are added. A function of the sizes alone.
Index attention_backward_parts(const HeadMapping& mapping, Index batch, Index seq);

/// Per head: dA = dO V^T, r_m = rowsum(A_m o dA), dV = W^T dO, dS1 = A1 o (dA - r1),
/// dS2 = -lambda A2 o (dA - r2), dQ_m = scale dS_m K_m, dK_m = scale dS_m^T Q_m, dlambda = -r2
/// (Differential Transformer, Appendix G, equation 7). With p the sinks' probability,
/// dsink1 = -p1 r1 and dsink2 = lambda p2 r2. With a soft cap dS_m is multiplied by its slope.
void attention_backward(const AttentionInputs& in, const Tensor& softmax_stats, const Tensor& dout,
                        AttentionGradients& gradients);

}  // namespace difftape
