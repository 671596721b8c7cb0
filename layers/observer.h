#pragma once
// The interface through which diagnostics read the tensors of a model while it runs. Nothing is
// computed or kept for an observer, and a pass without one costs nothing more.

#include "core/attention/attention.h"

namespace difftape {

/// The inputs of one attention layer, q and k after norm and RoPE, and its context. Tensors are
/// handles that may be kept. In bfloat16 q, k and v have not been rounded for their products yet.
struct AttentionView : AttentionInputs {
  /// (B, T, output heads, E): what enters W_O, except that of heads with a norm it is what enters
  /// the norm.
  Tensor context{};
  bool gated = false;      ///< the context was multiplied by a gate
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
