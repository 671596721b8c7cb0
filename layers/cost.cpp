#include "layers/cost.h"

#include <algorithm>
#include <cmath>

namespace difftape {

namespace {

void add(ModelCost::Counts& counts, std::string_view name, Index count) {
  const auto known = std::ranges::find(counts, name, &ModelCost::Counts::value_type::first);
  if (known == counts.end()) {
    counts.emplace_back(name, count);
  } else {
    known->second += count;
  }
}

/// Returns twice the mean number of keys that a query reads: half the square, minus keys before a
/// window, or half the square of its block and `others` earlier blocks as far as there are.
double twice_read(const AttentionFields& fields, Index seq, Index others) {
  const Index window = fields.sliding_window, size = fields.block_size;
  const auto keys = static_cast<double>(window > 0 ? std::min(window, seq) : seq);
  if (size == 0) return 2 * keys - keys * keys / static_cast<double>(seq);
  double pairs = 0;
  for (Index begin = 0; begin < seq; begin += size) {
    const auto rows = static_cast<double>(std::min(size, seq - begin));
    pairs += rows * (2 * static_cast<double>(std::min(begin, others * size)) + rows);
  }
  return pairs / static_cast<double>(seq);
}

}  // namespace

ModelCost model_cost(const ModelConfig& config, Index seq) {
  const LanguageModel model(config);
  const ModelConfig& used = model.config();
  ModelCost cost;
  const MoeConfig& moe = used.moe;
  cost.mlp_width = moe.num_experts > 0 ? moe.moe_intermediate_size : used.d_ff;
  cost.total_parameters = model.parameters().count();
  for (const auto& component : kNames<Component>) cost.parameters.emplace_back(component.name, 0);
  double active_parameters = 0;
  double products = 0, attention_products = 0;  // weights that multiply each token
  for (const Parameter& p : model.parameters()) {
    const Index size = p.shape.size();
    // k of E experts of equal size multiply a token.
    const double active = p.part.name == kExperts ? static_cast<double>(moe.num_experts_per_tok) /
                                                        static_cast<double>(moe.num_experts)
                                                  : 1;
    active_parameters += active * static_cast<double>(size);
    const bool in_attention = p.part.component == Component::attention;
    add(cost.parameters, to_string(p.part.component), size);
    if (in_attention) add(cost.attention_parameters, p.part.name, size);
    if (p.role != Role::projection && p.role != Role::output) continue;
    products += active * static_cast<double>(size);
    if (in_attention) attention_products += static_cast<double>(size);
  }
  if (used.tie_word_embeddings) products += static_cast<double>(used.vocab_size * used.d_model);

  cost.active_parameters = std::llround(active_parameters);

  const Attention& attention = model.attention();
  const HeadMapping& mapping = attention.mapping();
  const Index head_dim = head_dim_of(used), value_dim = attention.value_dim();
  const auto layers = static_cast<double>(used.num_layers);
  Index scores = 0, values = 0;  // widths of q k^T and W v; two products if value heads differ
  for (const OutputHead& output : mapping.outputs) {
    const bool two_values = mapping.maps == 2 && output.value[0] != output.value[1];
    scores += mapping.maps * head_dim;
    values += (two_values ? 2 : 1) * value_dim;
  }
  const AttentionFields fields = fields_of(used.attention);
  const Index others = fields.num_selected_blocks - 1;
  // W v reads the blocks of either map.
  const Index lists = fields.block_selection == BlockSelection::separately ? 2 : 1;
  cost.attention_flops_per_token =
      3 * layers *
      (static_cast<double>(scores) * twice_read(fields, seq, others) +
       static_cast<double>(values) * twice_read(fields, seq, lists * others));
  cost.attention_projection_flops_per_token = 6 * attention_products;
  cost.train_flops_per_token = 6 * products + cost.attention_flops_per_token;
  cost.kv_cache_per_token =
      used.num_layers * (mapping.key_heads * head_dim + mapping.value_heads * value_dim);
  return cost;
}

}  // namespace difftape
