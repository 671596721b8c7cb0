#include "train/run/config/fields.h"

#include "train/run/config/field_access.h"

namespace difftape::run {
namespace {

using detail::field;
using detail::kMaxSize;

std::vector<Field> size_fields() {
  constexpr auto at = &Config::model;
  using M = ModelConfig;
  return {
      field<at, &M::d_model>("model.d_model", between(1, kMaxSize), "features",
                             "Width of the residual stream."),
      field<at, &M::num_layers>("model.num_layers", between(1, 1024), "layers",
                                "Number of transformer blocks."),
      field<at, &M::num_heads>(
          "model.num_heads", between(1, 4096), "heads",
          "Number of heads H of the softmax baseline, for every attention kind."),
      field<at, &M::num_kv_heads>(
          "model.num_kv_heads", between(0, 4096), "heads",
          "Number of key and value heads of the baseline; 0 means num_heads."),
      field<at, &M::head_dim>("model.head_dim", between(0, 4096), "features",
                              "Width of one head, an even number; 0 means d_model / num_heads."),
      field<at, &M::d_ff>("model.d_ff", between(1, kMaxSize), "features",
                          "Hidden width of the SwiGLU MLP.", kDecides | kOfAttention),
      field<at, &M::max_seq_len>(
          "model.max_seq_len", between(1, kMaxSize).or_share_of("data.seq_len", 100), "tokens",
          "Longest sequence that the model accepts.", kDecides | kBesideModel),
      field<at, &M::vocab_size>("model.vocab_size", between(2, kMaxSize), "tokens",
                                "Vocabulary size; byte-level text needs 256.", kDecides | kOfTask),
      field<at, &M::rope>("model.rope", any_value(), "",
                          "Apply rotary position embeddings (RoPE) to queries and keys."),
      field<at, &M::rope_theta>("model.rope_theta", above(0), "", "Base of the rotary frequencies.",
                                kDecides | kBesideModel),
      field<at, &M::norm_eps>("model.norm_eps", between(1e-12, 1), "",
                              "RMSNorm epsilon, added to the mean square."),
      field<at, &M::tie_word_embeddings>("model.tie_word_embeddings", any_value(), "",
                                         "Use the embedding matrix as the output projection too."),
      field<at, &M::match_params>(
          "model.match_params", any_value(), "",
          "Set d_ff (moe_intermediate_size of experts) to the multiple of 4 whose parameter count "
          "is nearest to the softmax baseline.",
          kDecides | kOfAttention),
      field<at, &M::embedding_norm>("model.embedding_norm", any_value(), "",
                                    "Apply RMSNorm to the embeddings before the first block."),
      field<at, &M::yoco_self_layers>(
          "model.yoco_self_layers", between(0, 1023), "layers",
          "Number of first layers that are YOCO's self-decoder, with attention.sliding_window; all "
          "others read one shared key-value cache. 0 means that every layer has its own."),
      field<at, &M::z_loss_weight>("model.z_loss_weight", at_least(0), "",
                                   "Weight of the z-loss, the mean of log(sum exp(logits))^2; PaLM "
                                   "uses 1e-4, and 0 disables it."),
      field<at, &M::final_logit_softcap>("model.final_logit_softcap", at_least(0), "",
                                         "Soft cap c of the output logits, c tanh(logits / c); "
                                         "Gemma 2 uses 30, and 0 disables it."),
  };
}

std::vector<Field> rope_section() {
  constexpr auto at = &Config::model;
  constexpr auto in = &ModelConfig::rope_scaling;
  using R = RopeScaling;
  return {
      field<at, in, &R::rope_type>(
          "model.rope_scaling.rope_type", any_value(), "",
          "Scaling of rotary frequencies for sequences longer than in training."),
      field<at, in, &R::factor>("model.rope_scaling.factor", at_least(1), "",
                                "Ratio of the extended to the original sequence length."),
      field<at, in, &R::original_seq_len>(
          "model.rope_scaling.original_seq_len", between(0, kMaxSize), "tokens",
          "Sequence length in training, which yarn needs; 0 means max_seq_len / factor."),
      field<at, in, &R::attention_factor>(
          "model.rope_scaling.attention_factor", at_least(0), "",
          "Factor on queries and keys; 0 means 0.1 ln(factor) + 1 with yarn, else 1."),
  };
}

std::vector<Field> attention_section() {
  constexpr auto at = &Config::model;
  constexpr auto in = &ModelConfig::attention;
  using A = AttentionConfig;
  return {
      field<at, in, &A::kind>("model.attention.kind", any_value(), "",
                              "Attention kind, a preset of the fields below."),
      field<at, in, &A::pairing>("model.attention.pairing", any_value(), "",
                                 "Query heads that V2 subtracts: neighbors, or the second half "
                                 "from the first (cross-group)."),
      field<at, in, &A::lambda>(
          "model.attention.lambda", any_value(), "",
          "Parameterization of lambda, the weight of the second map; none fixes it at 1."),
      field<at, in, &A::lambda_init>(
          "model.attention.lambda_init", any_value(), "",
          "Constant term of the exponential lambda: by layer (schedule), or lambda_init_value."),
      field<at, in, &A::lambda_init_value>("model.attention.lambda_init_value", from_to_below(0, 1),
                                           "",
                                           "Constant term of lambda with lambda_init: constant."),
      field<at, in, &A::softmax_denominator>("model.attention.softmax_denominator", any_value(), "",
                                             "Extra term in the softmax denominator: none, exp(0) "
                                             "(softmax1), or one learned sink per head."),
      field<at, in, &A::subln>("model.attention.subln", any_value(), "",
                               "Apply RMSNorm to the output of each head, as V1 does."),
      field<at, in, &A::gate>("model.attention.gate", any_value(), "",
                              "Sigmoid gate on the attention output, per element or per head."),
      field<at, in, &A::qk_norm>("model.attention.qk_norm", any_value(), "",
                                 "Apply RMSNorm to every query and key head before RoPE."),
      field<at, in, &A::attn_logit_softcap>("model.attention.attn_logit_softcap", at_least(0), "",
                                            "Soft cap c of the scaled scores, c tanh(score / c); "
                                            "Gemma 2 uses 50, and 0 disables it."),
      field<at, in, &A::qk_clip_threshold>(
          "model.attention.qk_clip_threshold", at_least(0), "",
          "QK-clip threshold: heads with a larger attention logit get smaller query and key "
          "weights after the update; Kimi K2 uses 100, and 0 disables it."),
      field<at, in, &A::sliding_window>(
          "model.attention.sliding_window", between(0, kMaxSize), "tokens",
          "Number of tokens a query attends to, itself included; 0 means all earlier tokens."),
      field<at, in, &A::block_size>(
          "model.attention.block_size", between(0, kMaxSize), "tokens",
          "Block-sparse attention: tokens per block of keys, a multiple of 16; 0 means dense."),
      field<at, in, &A::num_selected_blocks>(
          "model.attention.num_selected_blocks", between(0, kMaxSize), "blocks",
          "Number of blocks a query reads: its own and the earlier blocks with the highest mean "
          "scores; used with block_size."),
      field<at, in, &A::block_selection>(
          "model.attention.block_selection", any_value(), "",
          "Selection of blocks: by scores averaged over all heads of a group, or separately for "
          "first and second maps."),
  };
}

std::vector<Field> moe_section() {
  constexpr auto at = &Config::model;
  constexpr auto in = &ModelConfig::moe;
  using M = MoeConfig;
  return {
      field<at, in, &M::num_experts>(
          "model.moe.num_experts", between(0, 1024), "experts",
          "Number of SwiGLU experts in place of each MLP; 0 means a dense MLP."),
      field<at, in, &M::num_experts_per_tok>("model.moe.num_experts_per_tok", between(1, 1024),
                                             "experts", "Number of experts of one token."),
      field<at, in, &M::num_shared_experts>("model.moe.num_shared_experts", between(0, 1024),
                                            "experts",
                                            "Number of experts that compute every token."),
      field<at, in, &M::moe_intermediate_size>("model.moe.moe_intermediate_size",
                                               between(0, kMaxSize), "features",
                                               "Hidden width of one expert."),
      field<at, in, &M::scoring_func>(
          "model.moe.scoring_func", any_value(), "",
          "Scores of the router: softmax (Mixtral, Qwen-MoE) or sigmoid (DeepSeek-V3)."),
      field<at, in, &M::norm_topk_prob>(
          "model.moe.norm_topk_prob", any_value(), "",
          "Divide the scores of the chosen experts by their sum (Mixtral, DeepSeek-V3); false "
          "keeps them (Switch, Qwen2-MoE)."),
      field<at, in, &M::router_aux_loss_coef>(
          "model.moe.router_aux_loss_coef", at_least(0), "",
          "Weight of the load-balancing loss of each layer; Switch uses 0.01."),
      field<at, in, &M::router_z_loss_coef>(
          "model.moe.router_z_loss_coef", at_least(0), "",
          "Weight of the z-loss of router logits in each layer; ST-MoE uses 0.001."),
      field<at, in, &M::router_bias_update_rate>(
          "model.moe.router_bias_update_rate", at_least(0), "",
          "Change per step of the bias that balances the experts without a loss; DeepSeek-V3 uses "
          "0.001, and 0 disables the bias."),
  };
}

std::vector<Field> init_section() {
  constexpr auto at = &Config::model;
  constexpr auto in = &ModelConfig::init;
  using I = InitConfig;
  return {
      field<at, in, &I::preset>(
          "model.init.preset", any_value(), "",
          "Initialization, a preset of the keys below: nanoGPT's (gpt2), PyTorch's defaults "
          "(torch), or fan-in projections with unit embeddings (lecun)."),
      field<at, in, &I::embedding_std>("model.init.embedding_std", above(0), "",
                                       "Standard deviation of the embeddings."),
      field<at, in, &I::projection_std>(
          "model.init.projection_std", above(0), "",
          "Standard deviation of the projections; fan_in means 1 / sqrt(fan_in)."),
      field<at, in, &I::residual_scaling>("model.init.residual_scaling", any_value(), "",
                                          "Divide o_proj and down_proj by sqrt(2 num_layers)."),
  };
}

}  // namespace

std::vector<Field> model_fields() {
  std::vector<Field> joined;
  for (const auto& section :
       {size_fields(), rope_section(), moe_section(), attention_section(), init_section()})
    joined.insert(joined.end(), section.begin(), section.end());
  return joined;
}

}  // namespace difftape::run
