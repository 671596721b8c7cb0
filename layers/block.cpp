#include "layers/block.h"

#include <fmt/format.h>

namespace difftape {

namespace {

/// Returns a module of `component` in a block, `model.layers.<layer><name>`.
Module module_of(ParameterSet& parameters, Index layer, Component component, const char* name) {
  return {parameters, fmt::format("model.layers.{}{}", layer, name), {component, layer}};
}

}  // namespace

TransformerBlock::TransformerBlock(ParameterSet& parameters, const ModelConfig& config, Index layer,
                                   std::shared_ptr<const RopeTable> rope)
    : layer_(layer),
      input_norm_(module_of(parameters, layer, Component::norms, "") / "input_layernorm",
                  config.d_model, config.norm_eps),
      attention_({module_of(parameters, layer, Component::attention, ".self_attn"), config},
                 std::move(rope)),
      post_attention_norm_(
          module_of(parameters, layer, Component::norms, "") / "post_attention_layernorm",
          config.d_model, config.norm_eps) {
  const Module mlp = module_of(parameters, layer, Component::mlp, ".mlp");
  if (config.moe.num_experts > 0) {
    moe_.emplace(mlp, config);
  } else {
    mlp_.emplace(mlp, config, config.d_ff);
  }
}

Var TransformerBlock::operator()(const Var& x, const Pass& pass, Var* router_loss) const {
  const Var h = attention_(input_norm_(x), pass, x), normed = post_attention_norm_(h);
  Var y = moe_ ? (*moe_)(normed, h, pass, router_loss) : (*mlp_)(normed, h);
  if (pass.observer && !pass.cache) pass.observer->hidden(layer_, y.value());
  return y;
}

}  // namespace difftape
