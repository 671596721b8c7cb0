#include "layers/gradcheck_cases.h"

#include <cmath>
#include <memory>

#include "autograd/gradcheck/op_cases.h"
#include "core/random.h"
#include "layers/language_model.h"

namespace difftape {

namespace {

ModelConfig small_config(const std::string& kind, Index kv_heads) {
  ModelConfig config;
  config.d_model = 8;
  config.num_layers = 2;
  config.num_heads = 4;
  config.num_kv_heads = kv_heads;
  config.head_dim = 2;
  config.d_ff = 5;
  config.max_seq_len = 6;
  config.vocab_size = 7;
  config.rope_theta = 100;
  config.attention.kind = kind;
  return config;
}

/// Standard deviation at which no gradient is too small to be checked and no norm so close to its
/// pole that the stencil is off: embeddings are divided by their own norm.
double check_std(Role role) { return role == Role::gain ? 0.2 : role == Role::embedding ? 1 : 0.4; }

void enlarge(ParameterSet& parameters) {
  parameters.initialize(5);
  for (Parameter& p : parameters) {
    Tensor noise = Tensor::like(p.value);
    fill_normal(noise, RandomStream(6, p.name), check_std(p.role));
    if (p.role == Role::gain) {
      p.value.add(noise);
    } else {
      p.value.copy_from(noise);
    }
  }
}

/// One attention layer as a function of its input and all its parameters.
GradcheckResult check_layer(const ModelConfig& config) {
  ParameterSet parameters;
  Parameter& x = parameters.declare("x", {2, 5, config.d_model}, Role::projection, Init::normal(1));
  const auto rope =
      std::make_shared<const RopeTable>(config.max_seq_len, head_dim_of(config), config.rope_theta);
  const Attention attention({parameters, "self_attn", 1, config}, rope);
  enlarge(parameters);
  fill_normal(x.value, RandomStream(4, "x"), 1);
  return gradcheck(parameters, [&](Tape& tape) { return attention(tape.parameter(x)); });
}

GradcheckResult check_model(const ModelConfig& config) {
  LanguageModel model(config);
  enlarge(model.parameters());
  const std::vector<std::int32_t> tokens{3, 1, 4, 1, 5, 2, 6, 5}, targets{1, 4, 1, 5, 2, 6, 5, 0};
  return gradcheck(model.parameters(), [&](Tape& tape) {
    return model.loss(tape, {tokens, 2, 4}, targets);
  });
}

}  // namespace

std::vector<GradcheckCase> gradcheck_cases() {
  std::vector<GradcheckCase> cases;
  for (const OpCase& c : op_cases()) {
    cases.push_back({c.name(), [c] { return gradcheck(c.make_inputs(), c.f); }});
  }
  for (const std::string& kind : attention_kinds()) {
    cases.push_back(
        {"layer/" + kind + "/mha", [kind] { return check_layer(small_config(kind, 4)); }});
    cases.push_back(
        {"layer/" + kind + "/gqa", [kind] { return check_layer(small_config(kind, 2)); }});
    cases.push_back({"model/" + kind, [kind] { return check_model(small_config(kind, 4)); }});
  }
  ModelConfig tied = small_config("softmax", 2);
  tied.tie_embeddings = true;
  cases.push_back({"model/tied_embeddings", [tied] { return check_model(tied); }});
  return cases;
}

}  // namespace difftape
