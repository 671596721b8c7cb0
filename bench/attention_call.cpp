#include "bench/attention_call.h"

#include <cmath>

#include "core/random.h"
#include "layers/attention/attention.h"

namespace difftape::bench {
namespace {

Tensor random(const Shape& shape, const char* name) {
  Tensor x = Tensor::empty(shape);
  fill_normal(x, RandomStream(1, name), 1);
  return x;
}

}  // namespace

AttentionCall::AttentionCall(HeadMapping wiring, Index batch, Index seq, Index head_dim,
                             Index value_dim)
    : mapping(std::move(wiring)) {
  const auto heads_out = static_cast<Index>(mapping.outputs.size());
  in.q = random({batch, seq, mapping.query_heads, head_dim}, "q");
  in.k = random({batch, seq, mapping.key_heads, head_dim}, "k");
  in.v = random({batch, seq, mapping.value_heads, value_dim}, "v");
  in.scale = 1 / std::sqrt(static_cast<double>(head_dim));
  lambda = Tensor::full({batch, seq, heads_out}, real(0.5));
  dout = random({batch, seq, heads_out, value_dim}, "dout");
  to = {Tensor::like(in.q),
        Tensor::like(in.k),
        Tensor::like(in.v),
        Accumulate::no,
        Accumulate::no,
        Accumulate::no,
        {},
        {}};
  if (mapping.maps == 2) to.dlambda = Tensor::like(lambda);
}

void AttentionCall::run() {
  in.lambda = mapping.maps == 2 ? &lambda : nullptr;
  const AttentionOutputs result = attention_forward(mapping, in);
  attention_backward(mapping, in, result.softmax_stats, dout, to);
  out = result.out;
}

double AttentionCall::flops() const {
  const Index batch = in.q.shape()[0], seq = in.q.shape()[1];
  const Index products = mapping.maps * in.q.shape()[3] + in.v.shape()[3];
  return 3.0 * static_cast<double>(products) *
         static_cast<double>(static_cast<Index>(mapping.outputs.size()) * batch * seq * seq);
}

AttentionCall attention_call(AttentionKind kind, Index heads, Index head_dim, Index batch,
                             Index seq) {
  ModelConfig config;
  config.num_heads = heads;
  config.head_dim = head_dim;
  config.attention.kind = kind;
  ParameterSet declared;  // allocates nothing
  const Attention layer({declared, "self_attn", 0, config}, nullptr);
  return {layer.mapping(), batch, seq, head_dim, layer.value_dim()};
}

}  // namespace difftape::bench
