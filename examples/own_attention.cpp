// A custom attention kind: the cosine of queries and keys, times a temperature that each head
// learns (scaled cosine attention, Liu et al. 2022, Swin Transformer V2, equation 2). This is the
// whole program: it has every command of difftape, for every kind.
#include <difftape/core/attention/visibility.h>
#include <difftape/layers/attention/context.h>
#include <difftape/layers/attention/kinds.h>
#include <difftape/layers/model_config.h>
#include <difftape/train/app/program.h>

using namespace difftape;

namespace {

/// x / |x| over the last axis.
Var unit(const Var& x) { return mul(x, rsqrt(affine(sum_last(mul(x, x)), 1, 1e-6))); }

/// Query heads that share a key head stand beside each other: (B, T, H, D) as (B, K, T * G, D).
Var by_key_head(const Var& x, Index keys) {
  const Shape s = x.shape();
  const Index group = s[2] / keys;
  const Var grouped = transpose(reshape(x, {s[0], s[1], keys, group, s[3]}), 1, 2);
  return reshape(grouped, {s[0], keys, s[1] * group, s[3]});
}

Var cosine_context(const AttentionOperands& in, const Var& temperature) {
  const Shape q = in.q.shape();
  const Index B = q[0], T = q[1], H = q[2], D = q[3], K = in.k.shape()[2], G = H / K;
  const Var queries = mul(unit(in.q), reshape(temperature, {H, 1}));
  const Var keys = transpose(transpose(unit(in.k), 1, 2), 2, 3);  // (B, K, D, T)
  const Var scores = matmul(by_key_head(queries, K), keys);       // (B, K, T * G, T)
  const Tensor mask = attention_mask(B, T, in.visible);
  const Var seen =
      add(reshape(scores, {B, K, T, G, T}), reshape(in.q.tape().constant(mask), {B, 1, T, 1, T}));
  const Var map = reshape(softmax(seen), {B, K, T * G, T});
  const Var mixed = reshape(matmul(map, transpose(in.v, 1, 2)), {B, K, T, G, D});
  return reshape(transpose(mixed, 1, 2), {B, T, H, D});
}

/// The rule of one layer, which owns one temperature per query head.
ContextRule cosine(const AttentionArgs& layer) {
  Parameter& log_temperature = layer.module.declare("log_temperature", {layer.config.num_heads},
                                                    Role::other, Init::constant(2));
  return [&log_temperature](const AttentionOperands& in) {
    return cosine_context(in, exp(in.q.tape().parameter(log_temperature)));
  };
}

}  // namespace

int main(int argc, char** argv) {
  register_attention(
      {.name = "cosine", .source = "Liu et al. 2022, Swin Transformer V2", .context = cosine});
  return app::main(argc, argv);
}
