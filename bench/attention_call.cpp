#include "bench/attention_call.h"

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

AttentionCall::AttentionCall(const HeadMapping& mapping, Index batch, Index seq, Index head_dim,
                             Index value_dim)
    : in{.mapping = mapping,
         .q = random({batch, seq, mapping.query_heads, head_dim}, "q"),
         .k = random({batch, seq, mapping.key_heads, head_dim}, "k"),
         .v = random({batch, seq, mapping.value_heads, value_dim}, "v"),
         .scale = attention_scale(head_dim)},
      dout(random({batch, seq, mapping.heads_out(), value_dim}, "dout")),
      to{.dq = Tensor::like(in.q), .dk = Tensor::like(in.k), .dv = Tensor::like(in.v)} {
  if (mapping.maps == 1) return;
  in.lambda = Tensor::full({batch, seq, mapping.heads_out()}, real(0.5));
  to.dlambda = Tensor::like(in.lambda);
}

void AttentionCall::run() {
  const AttentionOutputs result = attention_forward(in);
  attention_backward(in, result, dout, to);
  out = result.out;
}

double AttentionCall::flops() const {
  const Index batch = in.q.shape()[0], seq = in.q.shape()[1];
  const Index products = in.mapping.maps * in.q.shape()[3] + in.v.shape()[3];
  return 3.0 * static_cast<double>(products) *
         static_cast<double>(in.mapping.heads_out() * batch * seq * seq);
}

AttentionCall attention_call(AttentionKind kind, Index heads, Index head_dim, Index batch,
                             Index seq) {
  ModelConfig config;
  config.num_heads = heads;
  config.head_dim = head_dim;
  config.attention.kind = kind;
  ParameterSet declared;  // allocates nothing
  const Attention layer({{declared, "self_attn"}, config}, nullptr);
  return {layer.mapping(), batch, seq, head_dim, layer.value_dim()};
}

}  // namespace difftape::bench
