#pragma once
// The interface through which diagnostics read the tensors of a model while it runs. Nothing is
// computed or kept for an observer, and a pass without one costs nothing more.

#include "core/attention/attention.h"

namespace difftape {

/// One attention layer after its context was computed. Tensors are handles that may be kept. In
/// bfloat16 q, k and v are those before the rounding that their products apply.
struct AttentionView {
  HeadMapping mapping;
  Tensor q;       ///< (B, T, query_heads, D), after norm and RoPE
  Tensor k;       ///< (B, T, key_heads, D), likewise
  Tensor v;       ///< (B, T, value_heads, E)
  Tensor lambda;  ///< () or (B, T, output heads); not allocated with one map
  Tensor sinks;   ///< (query_heads), one more logit in every softmax; not allocated without
  double scale;   ///< multiplies q k^T
  double logit_softcap = 0;  ///< of the scaled scores; 0: none
  Visibility visible;
  /// (B, T, output heads, E): what enters W_O, except that of heads with a norm it is what enters
  /// the norm.
  Tensor context;
  bool gated;              ///< the context was multiplied by a gate
  Tensor softmax_stats{};  ///< of the kernel (core/attention/attention.h)
  Tensor output_weight{};  ///< (C, output heads * E): W_O
};

class Observer {
 public:
  virtual ~Observer() = default;
  /// Layers count from 0.
  virtual void attention(Index layer, const AttentionView& view) = 0;
  /// The hidden states (B, T, C) after the residual sums of a layer.
  virtual void hidden(Index layer, const Tensor& x) = 0;
};

}  // namespace difftape
