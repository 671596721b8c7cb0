#pragma once
// Attention layers as an observer sees them, without a model.

#include "core/attention/attention.h"
#include "core/random.h"
#include "layers/observer.h"

namespace difftape::test {

inline Tensor drawn(const Shape& shape, const std::string& name, double std = 1) {
  Tensor x = Tensor::empty(shape);
  fill_normal(x, RandomStream(5, name), std);
  return x;
}

/// The context that the kernel computes for the rest of the view.
inline void attend(AttentionView& view) {
  const AttentionInputs inputs{view.q,       view.k,
                               view.v,       view.lambda.allocated() ? &view.lambda : nullptr,
                               view.scale,   view.sinks.allocated() ? &view.sinks : nullptr,
                               view.visible, false};
  view.context = attention_forward(view.layout, inputs).out;
}

/// Random q, k and v of width 8 for a layout, and lambda of one number if there are two maps.
inline AttentionView view_of(const HeadLayout& layout, Index batch, Index seq, double lambda = 0.5,
                             double std = 1.5) {
  AttentionView view{};
  view.layout = layout;
  view.q = drawn({batch, seq, layout.query_heads, 8}, "q", std);
  view.k = drawn({batch, seq, layout.key_heads, 8}, "k", std);
  view.v = drawn({batch, seq, layout.value_heads, 8}, "v", 1);
  view.scale = 1 / std::sqrt(8.0);
  if (layout.maps == 2) view.lambda = Tensor::scalar(static_cast<real>(lambda));
  attend(view);
  return view;
}

}  // namespace difftape::test
