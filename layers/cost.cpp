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

/// Returns twice the mean number of keys that a query reads, its own as half a key: those before it
/// and in its window; with blocks only its own block and `others` earlier ones.
double twice_read(const AttentionFields& fields, Index seq, Index others) {
  const Index window = fields.sliding_window, size = fields.block_size;
  const Index most = 2 * (window > 0 ? window : seq);
  Index pairs = 0;
  for (Index t = 0; t < seq; ++t) {
    const Index seen = std::min(2 * t + 1, most);
    pairs += size > 0 ? std::min(seen, 2 * (t % size + others * size) + 1) : seen;
  }
  return static_cast<double>(pairs) / static_cast<double>(seq);
}

/// Returns the widths of q k^T and W v over all heads; two products W v if value heads differ.
std::pair<double, double> widths_of(const HeadSizes& sizes) {
  Index scores = 0, values = 0;
  for (const OutputHead& output : sizes.mapping.outputs) {
    scores += sizes.mapping.maps * sizes.head_dim;
    values += (sizes.mapping.shares_value(output) ? 1 : 2) * sizes.value_dim;
  }
  return {static_cast<double>(scores), static_cast<double>(values)};
}

}  // namespace

ModelCost model_cost(const ModelConfig& config, Index seq) {
  const LanguageModel model(config);
  ModelConfig used = model.config();
  ModelCost cost;
  const MoeConfig& moe = used.moe;
  cost.mlp_width = mlp_width(used);
  cost.total_parameters = model.parameters().count();
  for (const auto& component : kNames<Component>) cost.parameters.emplace_back(component.name, 0);
  double active_parameters = 0;
  // Weights that multiply each token: in total, in attention, and those that prefill multiplies
  // with the last token only.
  double products = 0, attention_products = 0, last_products = 0;
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
    if (p.role == Role::output || shares_key_values(used, p.part.layer))
      last_products += active * static_cast<double>(size);
  }
  if (used.tie_word_embeddings) {
    products += static_cast<double>(used.vocab_size * used.d_model);
    last_products += static_cast<double>(used.vocab_size * used.d_model);
  }
  cost.active_parameters = std::llround(active_parameters);

  const HeadSizes sizes = head_sizes(used);
  const auto [scores, values] = widths_of(sizes);
  AttentionFields fields = fields_of(used.attention);
  const Index others = fields.num_selected_blocks - 1;
  // W v reads the blocks of either map.
  const Index lists = fields.block_selection == BlockSelection::separately ? 2 : 1;
  const auto tokens = static_cast<double>(seq);
  cost.prefill_flops = 2 * (tokens * (products - last_products) + last_products);
  for (Index layer = 0; layer < used.num_layers; ++layer) {
    fields.sliding_window = window_of(used, layer);
    const double of_token =
        scores * twice_read(fields, seq, others) + values * twice_read(fields, seq, lists * others);
    cost.attention_flops_per_token += 3 * of_token;
    cost.prefill_flops +=
        tokens * (shares_key_values(used, layer) ? 2 * (scores + values) : of_token);
  }
  cost.attention_projection_flops_per_token = 6 * attention_products;
  cost.train_flops_per_token = 6 * products + cost.attention_flops_per_token;
  cost.kv_cache_per_token = kv_caches_of(used) * (sizes.mapping.key_heads * sizes.head_dim +
                                                  sizes.mapping.value_heads * sizes.value_dim);
  return cost;
}

}  // namespace difftape
