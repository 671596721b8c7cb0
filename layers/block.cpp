#include "layers/block.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/name_scope.h"
#include "layers/linear.h"

namespace difftape {

Mlp::Mlp(ParameterSet& parameters, const std::string& name, const ModelConfig& config)
    : gate_(parameters, name + ".gate_proj", config.d_model, config.d_ff,
            init_rule(config).projection(config.d_model)),
      up_(parameters, name + ".up_proj", config.d_model, config.d_ff,
          init_rule(config).projection(config.d_model)),
      down_(parameters, name + ".down_proj", config.d_ff, config.d_model,
            init_rule(config).to_residual(config.d_ff)) {}

Var Mlp::operator()(const Var& x, const Var& residual) const {
  const Var up = up_(x), gate = gate_(x);
  const NameScope scope(down_.name());
  return swiglu_linear(gate, up, down_.weight(x.tape()), residual);
}

namespace {
std::string name_of(Index layer, const char* part) {
  return fmt::format("model.layers.{}.{}", layer, part);
}
}  // namespace

TransformerBlock::TransformerBlock(ParameterSet& parameters, const ModelConfig& config, Index layer,
                                   std::shared_ptr<const RopeTable> rope)
    : layer_(layer),
      input_norm_(parameters, name_of(layer, "input_layernorm"), config.d_model, config.norm_eps),
      attention_({parameters, name_of(layer, "self_attn"), layer, config}, std::move(rope)),
      post_attention_norm_(parameters, name_of(layer, "post_attention_layernorm"), config.d_model,
                           config.norm_eps),
      mlp_(parameters, name_of(layer, "mlp"), config) {}

Var TransformerBlock::operator()(const Var& x, const Pass& pass) const {
  const Var h = attention_(input_norm_(x), pass, x);
  Var y = mlp_(post_attention_norm_(h), h);
  if (pass.observer && !pass.cache) pass.observer->hidden(layer_, y.value());
  return y;
}

}  // namespace difftape
