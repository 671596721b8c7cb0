// Combinations of the keys of a model that have no effect, each with a valid alternative.
#include "core/error.h"
#include "layers/language_model.h"
#include "layers/model_rules.h"
#include "train/run/config/model_memory.h"
#include "train/run/config/reader.h"

namespace difftape::run {
namespace {

/// Collects conflicts, which all involve one common key.
class Conflicts {
 public:
  explicit Conflicts(std::string common_key) : common_key_(std::move(common_key)) {}

  /// Adds a conflict of `keys`, given without "model.", if `invalid`.
  template <class... Args>
  void add_if(bool invalid, std::vector<std::string> keys, fmt::format_string<Args...> message,
              Args&&... args) {
    if (!invalid) return;
    keys.push_back(common_key_);
    for (std::string& key : keys) key.insert(0, "model.");
    list.push_back({std::move(keys), fmt::format(message, std::forward<Args>(args)...)});
  }

  std::vector<ModelConflict> list;

 private:
  std::string common_key_;
};

void check_maps(const ModelConfig& model, const AttentionFields& fields, Conflicts& conflicts) {
  const AttentionConfig& config = model.attention;
  const std::string_view kind = config.kind.name();
  const bool one_map = fields.maps() == 1;
  conflicts.add_if(one_map && config.pairing, {"attention.pairing"},
                   "{} has one softmax map per head, so there is nothing to subtract; write kind: "
                   "diff_v2 to pair its query heads, or leave out pairing",
                   kind);
  conflicts.add_if(
      fields.mapping == MappingKind::paired && config.pairing, {"attention.pairing"},
      "{} pairs query heads 2i and 2i+1 with key heads 2i and 2i+1; another pairing only renames "
      "them. Write kind: diff_v2, where pairing selects the key head of each map, or leave it out",
      kind);
  conflicts.add_if(fields.mapping == MappingKind::doubled &&
                       fields.pairing == Pairing::split_half && kv_heads_of(model) == 1,
                   {"attention.pairing", "num_kv_heads"},
                   "with one key head, all query heads are in one group, and another pairing only "
                   "renames them; write num_kv_heads above 1, or leave out pairing");
  const AttentionKind baseline;
  conflicts.add_if(config.kind != baseline && fields == fields_of(plain_kind(baseline, config)),
                   {"attention.softmax_denominator", "attention.gate"},
                   "without its gate or sink, {} equals {}; write kind: {}", kind, baseline.name(),
                   baseline.name());
  conflicts.add_if(one_map && config.lambda, {"attention.lambda"},
                   "{} has one softmax map per head, so there is nothing to subtract; write kind: "
                   "diff_v1 or diff_v2, or leave out lambda",
                   kind);
  const bool has_init = !one_map && fields.lambda == LambdaKind::exponential;
  conflicts.add_if(config.lambda_init && !has_init, {"attention.lambda_init", "attention.lambda"},
                   "lambda_init is the constant term of V1's exponential lambda, which this "
                   "variant does not use; write lambda: exponential, or leave out lambda_init");
  conflicts.add_if(
      config.lambda_init_value != AttentionConfig{}.lambda_init_value &&
          !(has_init && fields.lambda_init == LambdaInit::constant),
      {"attention.lambda_init_value", "attention.lambda_init", "attention.lambda"},
      "lambda_init_value is only used with lambda_init: constant; write that too, or leave out "
      "lambda_init_value");
}

void check_qk_clip(const AttentionFields& fields, Conflicts& conflicts) {
  if (fields.qk_clip == 0) return;
  conflicts.add_if(
      fields.qk_norm, {"attention.qk_clip_threshold", "attention.qk_norm"},
      "qk_norm undoes the scaling of query and key weights by QK-clip, and bounds the logits "
      "itself; leave out one of them");
  conflicts.add_if(
      fields.logit_softcap > 0, {"attention.qk_clip_threshold", "attention.attn_logit_softcap"},
      "QK-clip needs unbounded logits, and attn_logit_softcap bounds them; leave out one of them");
  conflicts.add_if(
      fields.softmax_denominator == SoftmaxDenominator::sink,
      {"attention.qk_clip_threshold", "attention.softmax_denominator"},
      "QK-clip cannot separate the largest logit of a row from the learned sink; write "
      "softmax_denominator: softmax or softmax1, or leave out qk_clip_threshold");
}

void check_context(const ModelConfig& model, const AttentionFields& fields, Conflicts& conflicts) {
  if (fields.context.empty()) return;
  const std::pair<bool, std::string> unknown[] = {
      {model.attention.softmax_denominator.has_value(), "softmax_denominator"},
      {fields.logit_softcap > 0, "attn_logit_softcap"},
      {fields.qk_clip > 0, "qk_clip_threshold"},
      {fields.block_size > 0, "block_size"}};
  for (const auto& [given, key] : unknown)
    conflicts.add_if(given, {"attention." + key},
                     "{} computes its context without a softmax, so {} has no effect; leave it out",
                     fields.context, key);
}

void check_blocks(const AttentionFields& fields, Conflicts& conflicts) {
  const std::string size = "attention.block_size", count = "attention.num_selected_blocks",
                    selection = "attention.block_selection";
  const bool sparse = fields.block_size > 0;
  const bool separately = fields.block_selection == BlockSelection::separately;
  conflicts.add_if(
      !sparse && (fields.num_selected_blocks > 0 || separately), {count, size, selection},
      "dense attention has no blocks to select; write block_size, such as 64, or leave "
      "out num_selected_blocks and block_selection");
}

void check_rope(const ModelConfig& model, Conflicts& conflicts) {
  const RopeScaling& scaling = model.rope_scaling;
  const bool none = scaling.rope_type == RopeScalingKind::none;
  conflicts.add_if(!none && !model.rope, {"rope_scaling.rope_type"},
                   "model.rope is false, so there are no frequencies to scale; leave it out, or "
                   "write model.rope: true");
  conflicts.add_if(
      !none && scaling.factor == 1, {"rope_scaling.factor"},
      "a factor of 1 scales nothing; write the ratio of the new to the trained sequence length, "
      "such as 4");
  conflicts.add_if(
      none && scaling.factor != 1, {"rope_scaling.factor"},
      "has no effect with rope_type none; write model.rope_scaling.rope_type: linear, ntk or yarn, "
      "or leave it out");
  conflicts.add_if(scaling.rope_type != RopeScalingKind::yarn && scaling.original_seq_len != 0,
                   {"rope_scaling.original_seq_len"},
                   "is only used with model.rope_scaling.rope_type: yarn; leave it out");
  conflicts.add_if(none && scaling.attention_factor != 0, {"rope_scaling.attention_factor"},
                   "has no effect with rope_type none; leave it out");
}

void check_moe(const ModelConfig& model, Conflicts& conflicts) {
  const MoeConfig& moe = model.moe;
  const MoeConfig defaults;
  if (moe.num_experts == 0) {
    const std::pair<bool, const char*> without_experts[] = {
        {moe.num_experts_per_tok != defaults.num_experts_per_tok, "num_experts_per_tok"},
        {moe.num_shared_experts > 0, "num_shared_experts"},
        {moe.moe_intermediate_size > 0, "moe_intermediate_size"},
        {moe.router_aux_loss_coef > 0, "router_aux_loss_coef"},
        {moe.router_z_loss_coef > 0, "router_z_loss_coef"},
        {moe.router_bias_update_rate > 0, "router_bias_update_rate"},
        {moe.scoring_func != defaults.scoring_func, "scoring_func"},
        {moe.norm_topk_prob != defaults.norm_topk_prob, "norm_topk_prob"}};
    for (const auto& [given, key] : without_experts)
      conflicts.add_if(given, {std::string("moe.") + key},
                       "there are no experts; write model.moe.num_experts: 8, or leave it out");
    return;
  }
  const bool all = moe.num_experts_per_tok == moe.num_experts;
  conflicts.add_if(all && moe.router_bias_update_rate > 0,
                   {"moe.router_bias_update_rate", "moe.num_experts_per_tok"},
                   "every token has all experts, so there is no load to balance; write fewer "
                   "experts per token, or leave out router_bias_update_rate");
  conflicts.add_if(all && moe.router_aux_loss_coef > 0,
                   {"moe.router_aux_loss_coef", "moe.num_experts_per_tok"},
                   "every token has all experts, so there is no load to balance; write fewer "
                   "experts per token, or leave out router_aux_loss_coef");
}

void check_yoco(const ModelConfig& model, Conflicts& conflicts) {
  if (model.yoco_self_layers == 0) return;
  conflicts.add_if(model.attention.sliding_window == 0, {"attention.sliding_window"},
                   "the self-decoder needs a window; write model.attention.sliding_window, such as "
                   "an eighth of data.seq_len, or model.yoco_self_layers: 0");
}

}  // namespace

std::vector<ModelConflict> model_conflicts(const ModelConfig& model) {
  std::vector<ModelConflict> all = broken_rules(model);
  const AttentionFields fields = fields_of(model.attention);
  Conflicts attention("attention.kind"), rope("rope_scaling.rope_type"), moe("moe.num_experts"),
      yoco("yoco_self_layers");
  check_context(model, fields, attention);
  check_maps(model, fields, attention);
  check_qk_clip(fields, attention);
  check_blocks(fields, attention);
  check_rope(model, rope);
  check_moe(model, moe);
  check_yoco(model, yoco);
  for (const Conflicts& some : {attention, rope, moe, yoco})
    all.insert(all.end(), some.list.begin(), some.list.end());
  return all;
}

std::string unsupported_reason(const ModelConfig& model) {
  if (const auto conflicts = model_conflicts(model); !conflicts.empty())
    return conflicts.front().message;
  try {
    constexpr double kAddresses = 0x1p47;  // user space of x86-64 and AArch64
    if (parameter_count(model) * sizeof(real) > kAddresses)
      return fmt::format("the weights exceed the address space of a process; lower {}",
                         sizes_to_lower(model));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace difftape::run
