#pragma once
// One call of the fused attention kernel, as the benchmarks make it.

#include "core/attention/attention.h"
#include "layers/attention/kinds.h"

namespace difftape::bench {

/// A kernel call with all inputs and outputs: random q, k, v and output gradient; lambda 0.5 if
/// there are two maps.
struct AttentionCall {
  /// Keys have `head_dim` features, values `value_dim`.
  AttentionCall(const HeadMapping& mapping, Index batch, Index seq, Index head_dim,
                Index value_dim);

  /// Forward and backward.
  void run();
  /// Returns the floating-point operations of forward and backward. A multiply-add counts 2, causal
  /// attention half the square, backward twice forward; recomputation does not count.
  double flops() const;

  AttentionInputs in;
  Tensor dout;  ///< (B, T, output heads, E)
  Tensor out;   ///< of the last run
  AttentionGradients to;
};

/// The call of a kind, with the query, key and value heads that it has where softmax attention has
/// `heads` of `head_dim`; without sinks.
AttentionCall attention_call(AttentionKind kind, Index heads, Index head_dim, Index batch,
                             Index seq);

}  // namespace difftape::bench
