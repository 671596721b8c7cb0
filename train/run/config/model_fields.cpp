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
          "Head count H of the softmax baseline, whatever the attention kind."),
      field<at, &M::num_kv_heads>("model.num_kv_heads", between(0, 4096), "heads",
                                  "Key and value heads of the baseline; 0 means num_heads."),
      field<at, &M::head_dim>("model.head_dim", between(0, 4096), "features",
                              "Width of one head, even; 0 means d_model / num_heads."),
      field<at, &M::d_ff>("model.d_ff", between(1, kMaxSize), "features",
                          "Inner width of the SwiGLU feed-forward layer.", kDecides | kOfAttention),
      field<at, &M::max_seq_len>("model.max_seq_len",
                                 between(1, kMaxSize).or_share_of("data.seq_len", 100), "tokens",
                                 "Longest sequence the model can read.", kDecides | kBesideModel),
      field<at, &M::vocab_size>("model.vocab_size", between(2, kMaxSize), "tokens",
                                "Number of different tokens; text data needs 256.",
                                kDecides | kOfTask),
      field<at, &M::rope>("model.rope", any_value(), "",
                          "Turn queries and keys by their positions (RoPE)."),
      field<at, &M::rope_theta>("model.rope_theta", above(0), "",
                                "Base of the rotary position frequencies.",
                                kDecides | kBesideModel),
      field<at, &M::norm_eps>("model.norm_eps", between(1e-12, 1), "",
                              "Added to the mean square in RMSNorm."),
      field<at, &M::tie_word_embeddings>("model.tie_word_embeddings", any_value(), "",
                                         "Use the embedding matrix as the output projection too."),
      field<at, &M::match_params>(
          "model.match_params", any_value(), "",
          "d_ff shrinks until the number of parameters is that of the softmax baseline.",
          kDecides | kOfAttention),
      field<at, &M::embedding_norm>("model.embedding_norm", any_value(), "",
                                    "RMSNorm of the embeddings before the first block."),
      field<at, &M::z_loss_weight>(
          "model.z_loss_weight", at_least(0), "",
          "Weight of the mean of log(sum exp(logits))^2 in the loss that is "
          "trained on; PaLM has 1e-4, and 0 means none."),
      field<at, &M::final_logit_softcap>(
          "model.final_logit_softcap", at_least(0), "",
          "c: output logits are c tanh(logits / c); Gemma 2 has 30, and "
          "0 leaves them as they are."),
  };
}

std::vector<Field> rope_section() {
  constexpr auto at = &Config::model;
  constexpr auto in = &ModelConfig::rope_scaling;
  using R = RopeScaling;
  return {
      field<at, in, &R::rope_type>(
          "model.rope_scaling.rope_type", any_value(), "",
          "How rotary frequencies change for sequences longer than those of "
          "training."),
      field<at, in, &R::factor>("model.rope_scaling.factor", at_least(1), "",
                                "How much longer they are."),
      field<at, in, &R::original_seq_len>(
          "model.rope_scaling.original_seq_len", between(0, kMaxSize), "tokens",
          "Length in training, which yarn reads; 0 means max_seq_len / factor."),
      field<at, in, &R::attention_factor>(
          "model.rope_scaling.attention_factor", at_least(0), "",
          "Queries and keys are multiplied by it; 0 means 0.1 ln(factor) + 1 with yarn, else 1."),
  };
}

std::vector<Field> attention_section() {
  constexpr auto at = &Config::model;
  constexpr auto in = &ModelConfig::attention;
  using A = AttentionConfig;
  return {
      field<at, in, &A::kind>("model.attention.kind", any_value(), "",
                              "The attention variant, a preset of the fields below."),
      field<at, in, &A::pairing>(
          "model.attention.pairing", any_value(), "",
          "Which query heads V2 subtracts: neighbours, or the second half from the first."),
      field<at, in, &A::lambda>("model.attention.lambda", any_value(), "",
                                "Weight of the second map; none subtracts it as it is."),
      field<at, in, &A::lambda_init>(
          "model.attention.lambda_init", any_value(), "",
          "The constant in the exponential lambda: by layer, or lambda_init_value."),
      field<at, in, &A::lambda_init_value>("model.attention.lambda_init_value", from_to_below(0, 1),
                                           "", "The constant of lambda_init: constant."),
      field<at, in, &A::softmax_denominator>(
          "model.attention.softmax_denominator", any_value(), "",
          "What joins the softmax's sum: nothing, exp(0), or exp of a learned sink a head."),
      field<at, in, &A::subln>("model.attention.subln", any_value(), "",
                               "RMSNorm of each head's result, as in V1."),
      field<at, in, &A::gate>(
          "model.attention.gate", any_value(), "",
          "Sigmoid gate of the input on each element of the result, or on each head."),
      field<at, in, &A::qk_norm>("model.attention.qk_norm", any_value(), "",
                                 "RMSNorm of every query and key head, before RoPE."),
      field<at, in, &A::attn_logit_softcap>(
          "model.attention.attn_logit_softcap", at_least(0), "",
          "c: scaled scores become c tanh(score / c); Gemma 2 has 50, and 0 leaves them."),
      field<at, in, &A::qk_clip_threshold>(
          "model.attention.qk_clip_threshold", at_least(0), "",
          "Largest attention logit that a head may have in a step: above it, its query and key "
          "weights are scaled down after the update; Kimi K2 has 100, and 0 clips nothing."),
      field<at, in, &A::sliding_window>(
          "model.attention.sliding_window", between(0, kMaxSize), "tokens",
          "Tokens a query sees, itself included; 0 means all before it."),
  };
}

std::vector<Field> init_section() {
  constexpr auto at = &Config::model;
  constexpr auto in = &ModelConfig::init;
  using I = InitConfig;
  return {
      field<at, in, &I::preset>("model.init.preset", any_value(), "",
                                "Initial weights, a preset of the keys below: nanoGPT's, PyTorch's "
                                "defaults, or LeCun's with unit embeddings."),
      field<at, in, &I::embedding_std>("model.init.embedding_std", above(0), "",
                                       "Standard deviation of the embeddings."),
      field<at, in, &I::projection_std>(
          "model.init.projection_std", above(0), "",
          "Standard deviation of the projections; fan_in is 1 / sqrt(inputs)."),
      field<at, in, &I::residual_scaling>("model.init.residual_scaling", any_value(), "",
                                          "Divide o_proj and down_proj by sqrt(2 num_layers)."),
  };
}

}  // namespace

std::vector<Field> model_fields() {
  std::vector<Field> joined;
  for (const auto& section : {size_fields(), rope_section(), attention_section(), init_section()})
    joined.insert(joined.end(), section.begin(), section.end());
  return joined;
}

}  // namespace difftape::run
