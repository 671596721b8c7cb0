#include "layers/block.h"

#include <fmt/format.h>

namespace difftape {

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

Var TransformerBlock::operator()(const Var& x, const DocumentOffsets& document_offsets,
                                 Observer* observer) const {
  const Var h = attention_(input_norm_(x), document_offsets, x, observer);
  Var y = mlp_(post_attention_norm_(h), h);
  if (observer) observer->hidden(layer_, y.value());
  return y;
}

}  // namespace difftape
