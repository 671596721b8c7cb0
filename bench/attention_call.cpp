#include "bench/attention_call.h"

#include <cmath>

#include "core/error.h"
#include "core/random.h"

namespace difftape::bench {
namespace {

Tensor random(const Shape& shape, const char* name) {
  Tensor x = Tensor::empty(shape);
  fill_normal(x, RandomStream(1, name), 1);
  return x;
}

}  // namespace

AttentionCall::AttentionCall(HeadLayout wiring, Index batch, Index seq, Index head_dim,
                             Index value_dim)
    : layout(std::move(wiring)) {
  const auto heads_out = static_cast<Index>(layout.routes.size());
  in.q = random({batch, seq, layout.query_heads, head_dim}, "q");
  in.k = random({batch, seq, layout.key_heads, head_dim}, "k");
  in.v = random({batch, seq, layout.value_heads, value_dim}, "v");
  in.scale = 1 / std::sqrt(static_cast<double>(head_dim));
  lambda = Tensor::full({batch, seq, heads_out}, real(0.5));
  dout = random({batch, seq, heads_out, value_dim}, "dout");
  to = {Tensor::like(in.q),
        Tensor::like(in.k),
        Tensor::like(in.v),
        Into::overwrite,
        Into::overwrite,
        Into::overwrite,
        {},
        {}};
  if (layout.maps == 2) to.dlambda = Tensor::like(lambda);
}

void AttentionCall::run() {
  in.lambda = layout.maps == 2 ? &lambda : nullptr;
  const AttentionOutputs result = attention_forward(layout, in);
  attention_backward(layout, in, result.row_stats, dout, to);
  out = result.out;
}

double AttentionCall::flops() const {
  const Index batch = in.q.shape()[0], seq = in.q.shape()[1];
  const Index products = layout.maps * in.q.shape()[3] + in.v.shape()[3];
  return 3.0 * static_cast<double>(products) *
         static_cast<double>(static_cast<Index>(layout.routes.size()) * batch * seq * seq);
}

AttentionCall attention_call(const std::string& kind, Index heads, Index head_dim, Index batch,
                             Index seq) {
  if (kind == "softmax") return {HeadLayout::single(heads, heads), batch, seq, head_dim, head_dim};
  if (kind == "diff_v1")
    return {HeadLayout::pairs(heads, heads), batch, seq, head_dim, 2 * head_dim};
  if (kind == "diff_v2") return {HeadLayout::doubled(heads, heads), batch, seq, head_dim, head_dim};
  throw UsageError(
      fmt::format("attention: no kernel '{}'; there are softmax, diff_v1, diff_v2", kind));
}

}  // namespace difftape::bench
