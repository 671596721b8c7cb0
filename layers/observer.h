#pragma once
// The interface through which diagnostics read the tensors of a running model. A pass without an
// observer costs nothing extra.

#include "core/attention/attention.h"
#include "core/routing.h"

namespace difftape {

/// The inputs of one attention layer, with q and k after norm and RoPE, and its context. Tensors
/// may be kept. q, k and v are not rounded to bfloat16.
struct AttentionView : AttentionInputs {
  /// (B, T, output heads, E): the input of the norm of heads, or else of W_O.
  Tensor context{};
  bool gated = false;      ///< a gate has multiplied the context
  Tensor softmax_stats{};  ///< of the kernel (core/attention/attention.h)
  Tensor output_weight{};  ///< (C, output heads * E): W_O
};

/// The decisions of one router.
struct RoutingView {
  RouterRule rule;
  Tensor logits;  ///< (N, E)
  const Routing& routing;
};

class Observer {
 public:
  virtual ~Observer() = default;
  /// Layers count from 0.
  virtual void attention(Index layer, const AttentionView& view) = 0;
  /// Receives the hidden states (B, T, C) after a layer.
  virtual void hidden(Index layer, const Tensor& x) = 0;
  /// Receives the routing of a layer with experts.
  virtual void routing(Index /*layer*/, const RoutingView& /*view*/) {}
};

}  // namespace difftape
