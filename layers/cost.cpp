#include "layers/cost.h"

namespace difftape {

namespace {

std::string component_of(const Parameter& p) {
  const auto within = [&](const char* text) { return p.name.find(text) != std::string::npos; };
  if (p.role == Role::embedding) return "embedding";
  if (within("self_attn")) return "attention";
  if (within("mlp")) return "feed-forward";
  return p.role == Role::gain ? "norms" : "head";
}

/// Activations of one block that its pullbacks keep, for one token.
double block_activations(const ModelConfig& config, const Attention& attention) {
  const Index norms = 2 * (config.d_model + 1);  // x and 1/rms of both norms
  const Index products = 2 * config.d_model;     // their outputs, read by the projections
  return static_cast<double>(norms + products + attention.activations_per_token() +
                             3 * config.d_ff);
}

}  // namespace

ModelCost model_cost(const ModelConfig& config, Index seq) {
  const LanguageModel model(config);
  const ModelConfig& used = model.config();
  ModelCost cost;
  cost.d_ff = used.d_ff;
  cost.total_parameters = model.parameters().count();
  for (const char* name : {"embedding", "attention", "feed-forward", "norms", "head"}) {
    cost.parameters.emplace_back(name, 0);
  }
  double products = 0;  // weights that multiply each token
  for (const Parameter& p : model.parameters()) {
    for (auto& [name, count] : cost.parameters)
      count += name == component_of(p) ? p.shape.size() : 0;
    if (p.role == Role::projection) products += static_cast<double>(p.shape.size());
  }
  if (used.tie_embeddings) products += static_cast<double>(used.vocab_size * used.d_model);

  const Attention& attention = model.attention();
  const HeadLayout& layout = attention.layout();
  const Index head_dim = head_dim_of(used), value_dim = attention.value_dim();
  const auto layers = static_cast<double>(used.num_layers);
  const double products_of_head = static_cast<double>(layout.maps * head_dim + value_dim);
  cost.attention_flops_per_token = 3 * layers * static_cast<double>(layout.routes.size()) *
                                   products_of_head * static_cast<double>(seq);
  cost.train_flops_per_token = 6 * products + cost.attention_flops_per_token;
  // Above the blocks: the input and output of the last norm, and dhidden of the loss.
  cost.activations_per_token =
      layers * block_activations(used, attention) + static_cast<double>(3 * used.d_model);
  cost.kv_cache_per_token =
      used.num_layers * (layout.key_heads * head_dim + layout.value_heads * value_dim);
  return cost;
}

}  // namespace difftape
