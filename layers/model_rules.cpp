#include "layers/model_rules.h"

#include <fmt/format.h>

#include "core/error.h"

namespace difftape {

namespace {

class Rules {
 public:
  /// Adds a broken rule unless it `holds`. The keys are given without "model.".
  template <class... Args>
  void check(bool holds, std::vector<std::string> keys, fmt::format_string<Args...> message,
             Args&&... args) {
    if (holds) return;
    for (std::string& key : keys) key.insert(0, "model.");
    broken.push_back({std::move(keys), fmt::format(message, std::forward<Args>(args)...)});
  }

  std::vector<ModelConflict> broken;
};

void check_sizes(const ModelConfig& c, Rules& rules) {
  const std::pair<const char*, Index> sizes[] = {
      {"d_model", c.d_model}, {"num_layers", c.num_layers},   {"num_heads", c.num_heads},
      {"d_ff", c.d_ff},       {"max_seq_len", c.max_seq_len}, {"vocab_size", c.vocab_size}};
  for (const auto& [key, size] : sizes)
    rules.check(size > 0, {key}, "{} is {}; need 1 or more", key, size);
  const std::pair<const char*, Index> defaulted[] = {{"num_kv_heads", c.num_kv_heads},
                                                     {"head_dim", c.head_dim}};
  for (const auto& [key, size] : defaulted)
    rules.check(size >= 0, {key}, "{} is {}; need 0 (default) or more", key, size);
}

void check_heads(const ModelConfig& c, const AttentionFields& fields, Rules& rules) {
  const Index kv_heads = kv_heads_of(c), head_dim = head_dim_of(c);
  const bool divides = c.head_dim != 0 || c.d_model % c.num_heads == 0;
  rules.check(divides, {"num_heads", "d_model", "head_dim"},
              "num_heads {} does not divide d_model {}; change one of them, or set model.head_dim",
              c.num_heads, c.d_model);
  const std::vector<std::string> dim_keys =
      c.head_dim == 0 ? std::vector<std::string>{"num_heads", "d_model", "head_dim"}
                      : std::vector<std::string>{"head_dim"};
  rules.check(!divides || !c.rope || (head_dim > 0 && head_dim % 2 == 0), dim_keys,
              "head_dim is {}{}; need an even number, because RoPE rotates pairs of features; or "
              "set model.rope: false",
              head_dim, c.head_dim == 0 ? " (d_model / num_heads)" : "");
  rules.check(
      c.num_heads % kv_heads == 0, {"num_kv_heads", "num_heads"},
      "num_kv_heads {} does not divide num_heads {} into groups of equal size; change one of them",
      kv_heads, c.num_heads);
  if (fields.mapping != MappingKind::paired) return;
  const std::string_view kind = c.attention.kind.name();
  const bool even = c.num_heads % 2 == 0;
  rules.check(even, {"num_heads", "attention.kind"},
              "{} pairs the heads of the baseline, but num_heads is {}; need an even number. "
              "num_heads counts the heads of the softmax baseline for every kind",
              kind, c.num_heads);
  rules.check(!even || kv_heads % 2 == 0, {"num_kv_heads", "attention.kind"},
              "{} pairs the key and value heads of the baseline, but num_kv_heads is {}; need an "
              "even number",
              kind, kv_heads);
}

void check_blocks(const AttentionFields& fields, Rules& rules) {
  const std::string size = "attention.block_size", count = "attention.num_selected_blocks",
                    selection = "attention.block_selection", kind = "attention.kind";
  const bool sparse = fields.block_size > 0;
  rules.check(fields.block_size % 16 == 0 && fields.block_size >= 0, {size, kind},
              "block_size is {}, but must be a multiple of 16; write {}", fields.block_size,
              std::max<Index>(fields.block_size + 15, 0) / 16 * 16);
  rules.check(!sparse || fields.num_selected_blocks > 0, {count, size, kind},
              "with block_size {} a query reads a number of blocks; write num_selected_blocks: 1 "
              "(its own) or more, or block_size: 0 for dense attention",
              fields.block_size);
  rules.check(!sparse || fields.block_selection != BlockSelection::separately || fields.maps() == 2,
              {selection, kind},
              "with one softmax map per head there is no second map to select blocks for; "
              "write block_selection: averaged, or kind: diff_v1 or diff_v2");
}

void check_moe(const ModelConfig& c, Rules& rules) {
  const MoeConfig& moe = c.moe;
  if (moe.num_experts == 0) return;
  const std::string experts = "moe.num_experts", per_token = "moe.num_experts_per_tok";
  rules.check(moe.num_experts > 0, {experts}, "num_experts is {}; need 0 (none) or more",
              moe.num_experts);
  rules.check(moe.num_experts_per_tok > 0, {per_token, experts},
              "num_experts_per_tok is {}; need 1 or more", moe.num_experts_per_tok);
  rules.check(moe.moe_intermediate_size > 0, {"moe.moe_intermediate_size", experts},
              "experts need a size; write model.moe.moe_intermediate_size: {}, which has the "
              "active FLOPs of d_ff {}",
              std::max<Index>(c.d_ff / std::max<Index>(moe.num_experts_per_tok, 1), 1), c.d_ff);
  rules.check(moe.num_experts_per_tok <= moe.num_experts, {per_token, experts},
              "a token cannot choose {} of {} experts; write at most {}", moe.num_experts_per_tok,
              moe.num_experts, moe.num_experts);
}

void check_yoco(const ModelConfig& c, Rules& rules) {
  if (c.yoco_self_layers == 0) return;
  const std::string self = "yoco_self_layers";
  rules.check(
      c.yoco_self_layers > 0 && c.yoco_self_layers < c.num_layers, {"num_layers", self},
      "{} layers of the self-decoder leave none of num_layers {} to the cross-decoder; write "
      "model.yoco_self_layers below num_layers, such as half of it, or 0 for an ordinary decoder",
      c.yoco_self_layers, c.num_layers);
  rules.check(c.attention.block_size == 0, {"attention.block_size", self},
              "a prompt runs the cross-decoder for its last token only, but the first token of a "
              "block selects its blocks; write model.attention.block_size: 0 or "
              "model.yoco_self_layers: 0");
}

}  // namespace

std::vector<ModelConflict> broken_rules(const ModelConfig& config) {
  Rules rules;
  check_sizes(config, rules);
  if (!rules.broken.empty()) return rules.broken;  // the others divide by them
  const AttentionFields fields = fields_of(config.attention);
  check_heads(config, fields, rules);
  check_blocks(fields, rules);
  rules.check(config.rope_scaling.factor > 0, {"rope_scaling.factor"},
              "factor is {}; need more than 0", config.rope_scaling.factor);
  check_moe(config, rules);
  check_yoco(config, rules);
  return rules.broken;
}

const ModelConfig& require_valid(const ModelConfig& config) {
  std::string all;
  for (const auto& [keys, message] : broken_rules(config))
    all += (all.empty() ? "" : "\n") + keys.front() + ": " + message;
  if (!all.empty()) throw ConfigError(all);
  return config;
}

}  // namespace difftape
