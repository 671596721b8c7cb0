#include "train/run/exchange/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "layers/attention/attention.h"

namespace difftape::run {
namespace {

/// Returns the architecture of a model; null if no class combines its attention with experts.
const HfArchitecture* architecture_of(const ModelConfig& model) {
  const MappingKind mapping = fields_of(model.attention).mapping;
  const auto found = std::ranges::find_if(kHfArchitectures, [&](const HfArchitecture& each) {
    return each.mapping == mapping && each.has_experts == (model.moe.num_experts > 0);
  });
  return found == kHfArchitectures.end() ? nullptr : &*found;
}

/// Returns num_attention_heads, which DifftapeV2 doubles itself.
Index attention_heads(const ModelConfig& model) {
  return fields_of(model.attention).query_multiple * model.num_heads;
}

void check_heads(const AttentionFields& fields, const ModelConfig& model, Reasons& reasons) {
  switch (fields.mapping) {
    case MappingKind::paired:
      reasons.unless(fields.lambda == LambdaKind::exponential,
                     "model.attention.lambda: is {}, but must be exponential for DiffLlama",
                     to_string(fields.lambda));
      reasons.unless(fields.lambda_init == LambdaInit::schedule,
                     "model.attention.lambda_init: is {}, but must be schedule for DiffLlama",
                     to_string(fields.lambda_init));
      reasons.unless(fields.subln,
                     "model.attention.subln: is false, but must be true for DiffLlama");
      reasons.unless(
          model.norm_eps == kSublnEps,
          "model.norm_eps: is {}, but must be {} for DiffLlama, whose norms share one epsilon",
          model.norm_eps, kSublnEps);
      return;
    case MappingKind::doubled:
      reasons.unless(fields.lambda != LambdaKind::exponential,
                     "model.attention.lambda: is exponential, but must be sigmoid, raw or none for "
                     "modeling_difftape.py");
      [[fallthrough]];
    default:
      reasons.unless(!fields.subln, "model.attention.subln: is true, but must be false for Llama");
      reasons.unless(model.d_model % attention_heads(model) == 0,
                     "model.d_model: is {}, but must be a multiple of the {} heads for Llama",
                     model.d_model, attention_heads(model));
  }
}

void check_experts(const ModelConfig& model, Reasons& reasons) {
  const MoeConfig& moe = model.moe;
  if (moe.num_experts == 0) return;
  reasons.unless(architecture_of(model) != nullptr,
                 "model.attention.kind: is {}, but must be softmax for Mixtral, the only supported "
                 "architecture with experts",
                 model.attention.kind.name());
  reasons.unless(moe.scoring_func == RouterScore::softmax,
                 "model.moe.scoring_func: is {}, but must be softmax for Mixtral",
                 to_string(moe.scoring_func));
  reasons.unless(moe.norm_topk_prob,
                 "model.moe.norm_topk_prob: is false, but must be true for Mixtral");
  reasons.unless(moe.num_shared_experts == 0,
                 "model.moe.num_shared_experts: is {}, but must be 0 for Mixtral",
                 moe.num_shared_experts);
  reasons.unless(moe.router_bias_update_rate == 0,
                 "model.moe.router_bias_update_rate: is {}, but must be 0 for Mixtral",
                 moe.router_bias_update_rate);
}

nlohmann::ordered_json rope_parameters(const ModelConfig& model) {
  const RopeRule rule = rope_rule(model);
  const RopeScaling& scaling = rule.scaling;
  switch (scaling.rope_type) {
    case RopeScalingKind::linear:
      return {{"rope_type", "linear"}, {"rope_theta", rule.theta}, {"factor", scaling.factor}};
    case RopeScalingKind::yarn:
      return {{"rope_type", "yarn"},
              {"rope_theta", rule.theta},
              {"factor", scaling.factor},
              {"original_max_position_embeddings", scaling.original_seq_len},
              {"attention_factor", attention_factor_of(scaling)}};
    case RopeScalingKind::ntk:  // equals a larger base
      return {{"rope_type", "default"},
              {"rope_theta", ntk_theta(rule.theta, scaling.factor, head_dim_of(model))}};
    case RopeScalingKind::none:
      break;
  }
  return {{"rope_type", "default"}, {"rope_theta", rule.theta}};
}

}  // namespace

std::vector<std::string> why_not_hf(const ModelConfig& model) {
  const AttentionFields fields = fields_of(model.attention);
  Reasons reasons;
  reasons.unless(
      fields.context.empty(),
      "model.attention.kind: is {}, but must be a kind without a context rule of its own",
      model.attention.kind.name());
  reasons.unless(model.rope, "model.rope: is false, but must be true");
  reasons.unless(model.rope_scaling.rope_type == RopeScalingKind::yarn ||
                     attention_factor_of(model.rope_scaling) == 1,
                 "model.rope_scaling.attention_factor: is {}, but must be 1 without yarn",
                 attention_factor_of(model.rope_scaling));
  reasons.unless(!model.embedding_norm, "model.embedding_norm: is true, but must be false");
  reasons.unless(model.yoco_self_layers == 0, "model.yoco_self_layers: is {}, but must be 0",
                 model.yoco_self_layers);
  reasons.unless(model.final_logit_softcap == 0, "model.final_logit_softcap: is {}, but must be 0",
                 model.final_logit_softcap);
  check_heads(fields, model, reasons);
  check_experts(model, reasons);
  reasons.unless(fields.softmax_denominator == SoftmaxDenominator::softmax,
                 "model.attention.softmax_denominator: is {}, but must be softmax",
                 to_string(fields.softmax_denominator));
  reasons.unless(fields.gate == Gate::none, "model.attention.gate: is {}, but must be none",
                 to_string(fields.gate));
  reasons.unless(!fields.qk_norm, "model.attention.qk_norm: is true, but must be false");
  reasons.unless(fields.logit_softcap == 0,
                 "model.attention.attn_logit_softcap: is {}, but must be 0", fields.logit_softcap);
  reasons.unless(fields.sliding_window == 0, "model.attention.sliding_window: is {}, but must be 0",
                 fields.sliding_window);
  reasons.unless(fields.block_size == 0, "model.attention.block_size: is {}, but must be 0",
                 fields.block_size);
  return reasons.list;
}

bool needs_modeling_file(const ModelConfig& model) {
  return fields_of(model.attention).mapping == MappingKind::doubled;
}

nlohmann::ordered_json hf_config(const ModelConfig& model, Index eos_token_id) {
  const AttentionFields fields = fields_of(model.attention);
  const HfArchitecture& architecture = *architecture_of(model);
  nlohmann::ordered_json json{{"architectures", {architecture.name}},
                              {"model_type", architecture.model_type},
                              {"vocab_size", model.vocab_size},
                              {"hidden_size", model.d_model},
                              {"intermediate_size", model.d_ff},
                              {"num_hidden_layers", model.num_layers},
                              {"num_attention_heads", attention_heads(model)},
                              {"num_key_value_heads", kv_heads_of(model)},
                              {"head_dim", head_dim_of(model)},
                              {"hidden_act", "silu"},
                              {"max_position_embeddings", model.max_seq_len},
                              {"rms_norm_eps", model.norm_eps},
                              {"rope_theta", model.rope_theta},
                              {"tie_word_embeddings", model.tie_word_embeddings},
                              {"attention_bias", false},
                              {"mlp_bias", false},
                              {"attention_dropout", 0.0},
                              {"bos_token_id", nullptr},
                              {"eos_token_id", nullptr},
                              {"pad_token_id", nullptr},
                              {"dtype", sizeof(real) == 8 ? "float64" : "float32"}};
  // transformers 5 reads the base of RoPE in rope_parameters, version 4 in rope_theta.
  json["rope_parameters"] = rope_parameters(model);
  json["rope_theta"] = json["rope_parameters"]["rope_theta"];
  if (architecture.has_experts) {
    json["intermediate_size"] = model.moe.moe_intermediate_size;
    json["num_local_experts"] = model.moe.num_experts;
    json["num_experts_per_tok"] = model.moe.num_experts_per_tok;
    json["router_aux_loss_coef"] = model.moe.router_aux_loss_coef;
    json["sliding_window"] = nullptr;
  }
  if (eos_token_id >= 0) json["eos_token_id"] = eos_token_id;
  if (!needs_modeling_file(model)) return json;
  json["pairing"] = to_string(fields.pairing);
  json["lambda_rule"] = to_string(fields.lambda);
  json["auto_map"] = {{"AutoConfig", "modeling_difftape.DifftapeV2Config"},
                      {"AutoModelForCausalLM", "modeling_difftape.DifftapeV2ForCausalLM"}};
  return json;
}

namespace {

/// Number and width of the heads of a projection.
struct Heads {
  Index count, width;
};

/// Returns element i of the order 0, 2, 4, ..., 1, 3, 5, ... below an even count.
Index even_first(Index i, Index count) { return i < count / 2 ? 2 * i : 2 * (i - count / 2) + 1; }

/// Returns the rows of a projection with its heads, the features of each head, or both reordered.
std::vector<Index> rows_of(Heads heads, bool reorder_heads, bool reorder_features) {
  std::vector<Index> rows;
  for (Index i = 0; i < heads.count; ++i) {
    const Index head = reorder_heads ? even_first(i, heads.count) : i;
    for (Index j = 0; j < heads.width; ++j) {
      const Index feature = reorder_features ? even_first(j, heads.width) : j;
      rows.push_back(head * heads.width + feature);
    }
  }
  return rows;
}

}  // namespace

std::string hf_name(std::string parameter) {
  const auto replace = [&parameter](std::string_view ours, std::string_view theirs) {
    if (const size_t at = parameter.find(ours); at != parameter.npos)
      parameter.replace(at, ours.size(), theirs);
  };
  if (parameter.find(".mlp.experts.") != parameter.npos) {
    replace(".gate_proj.", ".w1.");
    replace(".up_proj.", ".w3.");
    replace(".down_proj.", ".w2.");
  }
  replace(".mlp.experts.", ".block_sparse_moe.experts.");
  replace(".mlp.gate.", ".block_sparse_moe.gate.");
  return parameter;
}

std::vector<Index> hf_rows(const std::string& parameter, const ModelConfig& model) {
  const AttentionFields fields = fields_of(model.attention);
  const bool paired = fields.mapping == MappingKind::paired;
  const bool doubled = fields.mapping == MappingKind::doubled;
  const Index width = head_dim_of(model);
  const Index queries = (doubled ? 2 : fields.query_multiple) * model.num_heads;
  if (parameter.ends_with(".q_proj.weight")) return rows_of({queries, width}, paired, model.rope);
  const Heads keys{kv_heads_of(model), width};
  if (parameter.ends_with(".k_proj.weight")) return rows_of(keys, paired, model.rope);
  if (parameter.ends_with(".v_proj.weight")) return rows_of(keys, paired, false);
  return {};
}

Tensor reordered(const Tensor& x, const std::vector<Index>& rows, bool back) {
  if (rows.empty()) return x;
  Tensor y = Tensor::like(x);
  for (Index i = 0; const Index row : rows) {
    std::copy_n(x.row(back ? i : row), x.shape().last(), y.row(back ? row : i));
    ++i;
  }
  return y;
}

bool folds_subln(const ModelConfig& model) { return fields_of(model.attention).subln; }

Tensor with_subln(const Tensor& o_proj, const Tensor& subln) {
  Tensor y = Tensor::like(o_proj);
  const Index columns = o_proj.shape().last(), width = subln.size();
  for (Index i = 0; i < o_proj.size(); ++i)
    y.data()[i] = o_proj.data()[i] * subln.data()[i % columns % width];
  return y;
}

bool is_product(const Tensor& folded, const Tensor& o_proj, const Tensor& subln,
                std::string_view dtype) {
  const Tensor product = with_subln(o_proj, subln);
  // In double a product of two floats is exact, and rounds to their product in float.
  const auto stored = [is_f32 = dtype == "F32"](real x) {
    return is_f32 ? static_cast<real>(static_cast<float>(x)) : x;
  };
  return std::ranges::equal(folded.values(), product.values(), [&](real is, real x) {
    return is == stored(x) || (std::isnan(is) && std::isnan(x));
  });
}

std::string o_proj_name(Index layer) {
  return fmt::format("model.layers.{}.self_attn.o_proj.weight", layer);
}

std::string subln_name(Index layer) {
  return fmt::format("model.layers.{}.self_attn{}", layer, kSublnSuffix);
}

}  // namespace difftape::run
