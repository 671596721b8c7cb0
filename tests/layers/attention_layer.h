#pragma once
// One attention layer with large random parameters, for tests of its structure.

#include "layers/attention/attention.h"
#include "tests/support/tensors.h"
#include "tests/support/test.h"

namespace difftape::test {

/// 4 heads of 4 over d_model 6; change it before building a layer.
inline ModelConfig layer_config(const std::string& kind) {
  ModelConfig config;
  config.d_model = 6;
  config.num_layers = 1;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 4;
  config.max_seq_len = 200;
  config.attention.kind = kind;
  return config;
}

class Layer {
 public:
  explicit Layer(const ModelConfig& model)
      : config(model),
        attention({{parameters, "attn", {Component::attention, 0}}, config},
                  config.rope ? std::make_shared<const RopeTable>(
                                    config.max_seq_len, head_dim_of(config), RopeRule{.theta = 100})
                              : nullptr) {
    parameters.initialize(1);
    for (Parameter& p : parameters) p.value.copy_from(random(p.shape, p.name, 0.6));
  }
  Tensor& weight(const std::string& name) { return parameters.find("attn." + name)->value; }
  const Tensor& gradient(const std::string& name) { return parameters.find("attn." + name)->grad; }

  Tensor forward(const Tensor& x, const DocumentOffsets& starts = nullptr) {
    Tape tape(Tape::Mode::inference);
    return attention(tape.constant(x), {starts}).value();
  }
  /// Returns the gradient of <cotangent, output> for x; parameters keep theirs.
  Tensor backward(const Tensor& x, const Tensor& cotangent,
                  const DocumentOffsets& starts = nullptr) {
    for (Parameter& p : parameters) p.zero_grad();
    Tape tape;
    const Var input = tape.input(x);
    tape.backward(attention(input, {starts}), cotangent);
    return tape.gradient_of(input);
  }

  ModelConfig config;
  ParameterSet parameters;
  Attention attention;
};

/// Every kind, and ablations of V1 and V2, as layers.
inline std::vector<ModelConfig> variants() {
  std::vector<ModelConfig> all;
  for (const std::string& kind : attention_kinds()) all.push_back(layer_config(kind));
  const auto add = [&](const std::string& kind, auto&& change) {
    all.push_back(layer_config(kind));
    change(all.back().attention);
  };
  add("diff_v2", [](AttentionConfig& a) { a.pairing = Pairing::split_half; });
  add("diff_v2", [](AttentionConfig& a) { a.lambda = LambdaKind::raw; });
  add("diff_v2", [](AttentionConfig& a) { a.lambda = LambdaKind::one; });
  add("diff_v2", [](AttentionConfig& a) { a.softmax_denominator = SoftmaxDenominator::sink; });
  add("diff_v1", [](AttentionConfig& a) { a.subln = false; });
  add("diff_v1", [](AttentionConfig& a) { a.lambda = LambdaKind::sigmoid; });
  add("diff_v1", [](AttentionConfig& a) { a.qk_norm = true; });
  return all;
}

}  // namespace difftape::test
