#include "layers/cost.h"

namespace difftape {

namespace {

constexpr std::string_view kBlocks = "model.layers.";

void add(ModelCost::Counts& counts, const std::string& name, Index count) {
  for (auto& [known, total] : counts) {
    if (known == name) {
      total += count;
      return;
    }
  }
  counts.emplace_back(name, count);
}

/// Twice the keys that a query sees on average: half the square, less what lies before a window.
double twice_visible(Index seq, Index window) {
  const auto keys = static_cast<double>(window > 0 ? std::min(window, seq) : seq);
  return 2 * keys - keys * keys / static_cast<double>(seq);
}

}  // namespace

ParameterGroup group_of(const Parameter& parameter) {
  const std::string& name = parameter.name;
  if (!name.starts_with(kBlocks)) {
    const bool of_norm = parameter.role == Role::norm_weight;
    return {-1, parameter.role == Role::embedding ? "embedding" : of_norm ? "norms" : "head", ""};
  }
  // model.layers.<layer>.self_attn.<part>[.weight], the same with mlp, or <norm>.weight
  const auto word = [&](size_t& at) {
    const size_t begin = at, end = std::min(name.find('.', at), name.size());
    at = end + 1;
    return name.substr(begin, end - begin);
  };
  size_t at = kBlocks.size();
  const Index layer = std::stoll(word(at));
  const std::string within = word(at);
  if (within != "self_attn" && within != "mlp") return {layer, "norms", within};
  const std::string part = word(at);
  return {layer, within == "mlp" ? "mlp" : "attention",
          part.starts_with("lambda") ? "lambda" : part};
}

ModelCost model_cost(const ModelConfig& config, Index seq) {
  const LanguageModel model(config);
  const ModelConfig& used = model.config();
  ModelCost cost;
  cost.d_ff = used.d_ff;
  cost.total_parameters = model.parameters().count();
  for (const char* name : {"embedding", "attention", "mlp", "norms", "head"}) {
    cost.parameters.emplace_back(name, 0);
  }
  double products = 0, attention_products = 0;  // weights that multiply each token
  for (const Parameter& p : model.parameters()) {
    const ParameterGroup group = group_of(p);
    const Index size = p.shape.size();
    const bool in_attention = group.component == "attention";
    add(cost.parameters, group.component, size);
    if (in_attention) add(cost.attention_parameters, group.part, size);
    if (p.role != Role::projection && p.role != Role::output) continue;
    products += static_cast<double>(size);
    if (in_attention) attention_products += static_cast<double>(size);
  }
  if (used.tie_word_embeddings) products += static_cast<double>(used.vocab_size * used.d_model);

  const Attention& attention = model.attention();
  const HeadMapping& mapping = attention.mapping();
  const Index head_dim = head_dim_of(used), value_dim = attention.value_dim();
  const auto layers = static_cast<double>(used.num_layers);
  Index products_of_heads = 0;  // widths of q k^T and W v, of two products where values differ
  for (const OutputHead& output : mapping.outputs) {
    const bool two_values = mapping.maps == 2 && output.value[0] != output.value[1];
    products_of_heads += mapping.maps * head_dim + (two_values ? 2 : 1) * value_dim;
  }
  cost.attention_flops_per_token = 3 * layers * static_cast<double>(products_of_heads) *
                                   twice_visible(seq, used.attention.sliding_window);
  cost.attention_projection_flops_per_token = 6 * attention_products;
  cost.train_flops_per_token = 6 * products + cost.attention_flops_per_token;
  cost.kv_cache_per_token =
      used.num_layers * (mapping.key_heads * head_dim + mapping.value_heads * value_dim);
  return cost;
}

}  // namespace difftape
