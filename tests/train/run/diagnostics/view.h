#pragma once
// Attention views for tests, without a model.

#include "core/attention/attention.h"
#include "core/random.h"
#include "layers/observer.h"
#include "tests/support/test.h"

namespace difftape::test {

inline Tensor drawn(const Shape& shape, const std::string& name, double std = 1) {
  Tensor x = Tensor::empty(shape);
  fill_normal(x, RandomStream(5, name), std);
  return x;
}

/// Computes the context of the view with the kernel.
inline void attend(AttentionView& view) { view.context = attention_forward(view).out; }

/// Returns a view with random q, k and v of width 8, and a scalar lambda if there are two maps.
inline AttentionView view_of(const HeadMapping& mapping, Index batch, Index seq,
                             double lambda = 0.5, double std = 1.5) {
  AttentionView view{};
  view.mapping = mapping;
  view.q = drawn({batch, seq, mapping.query_heads, 8}, "q", std);
  view.k = drawn({batch, seq, mapping.key_heads, 8}, "k", std);
  view.v = drawn({batch, seq, mapping.value_heads, 8}, "v", 1);
  view.scale = attention_scale(8);
  if (mapping.maps == 2) view.lambda = Tensor::scalar(static_cast<real>(lambda));
  attend(view);
  return view;
}

}  // namespace difftape::test
