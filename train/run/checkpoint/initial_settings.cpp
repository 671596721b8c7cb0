#include "train/run/checkpoint/initial_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/error.h"
#include "core/name_scope.h"
#include "layers/language_model.h"
#include "train/run/checkpoint/checkpoint.h"
#include "train/run/config/writer.h"

namespace difftape::run {
namespace {

/// Keys of a model that only training or the length of sequences depends on.
constexpr std::array<std::string_view, 6> kOfTraining{"model.max_seq_len",
                                                      "model.z_loss_weight",
                                                      "model.attention.qk_clip_threshold",
                                                      "model.moe.router_aux_loss_coef",
                                                      "model.moe.router_z_loss_coef",
                                                      "model.moe.router_bias_update_rate"};

/// Returns the model with the defaults that other keys decide replaced by their values, and with
/// equal values for keys without effect.
ModelConfig with_values(const ModelConfig& config) {
  ModelConfig model = matched(config);
  model.num_kv_heads = kv_heads_of(model);
  model.head_dim = head_dim_of(model);
  const RopeRule rule = rope_rule(model);
  const bool yarn = rule.scaling.rope_type == RopeScalingKind::yarn;
  model.rope_scaling.original_seq_len = yarn ? rule.scaling.original_seq_len : 0;
  model.rope_scaling.attention_factor = attention_factor_of(rule.scaling);
  if (!model.rope) model.rope_theta = ModelConfig{}.rope_theta;
  const AttentionFields fields = fields_of(model.attention);
  model.attention.pairing = fields.pairing;
  model.attention.lambda = fields.lambda;
  model.attention.lambda_init = fields.lambda_init;
  model.attention.lambda_init_value = fields.lambda_init_value;
  model.attention.softmax_denominator = fields.softmax_denominator;
  model.attention.subln = fields.subln;
  model.attention.gate = fields.gate;
  model.init = {};
  return model;
}

std::vector<KeyDifference> differences_of_weights(const Config& made, const Config& wanted) {
  Config a, b;
  a.model = with_values(made.model);
  b.model = with_values(wanted.model);
  a.data.eos_token_id = made.data.eos_token_id;  // attention stays within documents
  b.data.eos_token_id = wanted.data.eos_token_id;
  if (fields_of(a.model.attention) == fields_of(b.model.attention))
    a.model.attention.kind = b.model.attention.kind;
  return differences(a, b);
}

}  // namespace

std::vector<std::string> other_initial_settings(const ResolvedConfig& resolved) {
  const std::string& from = resolved.config.train.init_from;
  if (from.empty()) return {};
  const NameScope scope("train.init_from");
  const Checkpoint weights(find_checkpoint(from));
  const std::string where = weights.path().string();
  const Config made = config_from_yaml(weights.meta().config_yaml, where);
  LanguageModel model(resolved.config.model);
  weights.require_fits(model.parameters());
  std::vector<std::string> all, unnamed, remedies;
  for (const auto& [key, before, now] : differences_of_weights(made, resolved.config)) {
    all.push_back(fmt::format("{} is {} in the checkpoint, {} here", key, before, now));
    if (resolved.origins.contains(key) || std::ranges::count(kOfTraining, key) > 0) continue;
    unnamed.push_back(all.back());
    remedies.push_back(fmt::format("{}: {}", key, before));
  }
  throw_if<ConfigError>(
      !unnamed.empty(),
      "train.init_from: the weights of {} were trained with other settings:\n  {}\nname each of "
      "these keys in the configuration or with --set; these lines keep the settings of the "
      "checkpoint:\n  {}",
      where, fmt::join(unnamed, "\n  "), fmt::join(remedies, "\n  "));
  return all;
}

}  // namespace difftape::run
