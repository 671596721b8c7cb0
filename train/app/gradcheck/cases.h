#pragma once
// The cases of `difftape gradcheck`: every op, every attention variant, whole models. The variants
// are header-only, so that tests of layers, which do not link train, use the same list.

#include <functional>
#include <string>
#include <vector>

#include "autograd/gradcheck/gradcheck.h"
#include "core/attention/attention.h"
#include "layers/attention/kinds.h"
#include "layers/language_model.h"

namespace difftape::app {

/// A named attention: a kind, or a kind with other fields (an ablation).
struct AttentionVariant {
  std::string name;
  AttentionConfig attention;
};

inline std::vector<AttentionVariant> attention_variants() {
  std::vector<AttentionVariant> variants;
  for (const std::string& kind : attention_kinds()) variants.push_back({kind, {.kind = kind}});
  const std::vector<AttentionVariant> ablations{
      {"gated_head", {.kind = "gated", .gate = Gate::head}},
      {"v1_no_subln", {.kind = "diff_v1", .subln = false}},
      {"v1_lambda_init",
       {.kind = "diff_v1", .lambda_init = LambdaInit::constant, .lambda_init_value = 0.5}},
      {"v1_sigmoid", {.kind = "diff_v1", .lambda = LambdaKind::sigmoid}},
      {"v1_sink_gate",
       {.kind = "diff_v1",
        .softmax_denominator = SoftmaxDenominator::sink,
        .gate = Gate::elementwise}},
      {"v2_split_half", {.kind = "diff_v2", .pairing = Pairing::split_half}},
      {"v2_lambda_raw", {.kind = "diff_v2", .lambda = LambdaKind::raw}},
      {"v2_lambda_none", {.kind = "diff_v2", .lambda = LambdaKind::one}},
      {"v2_softmax1", {.kind = "diff_v2", .softmax_denominator = SoftmaxDenominator::softmax1}},
      {"v2_sink", {.kind = "diff_v2", .softmax_denominator = SoftmaxDenominator::sink}},
      {"v2_sink_gate_head",
       {.kind = "diff_v2", .softmax_denominator = SoftmaxDenominator::sink, .gate = Gate::head}},
      {"softcap", {.kind = "softmax", .attn_logit_softcap = 4}},
      {"v1_softcap", {.kind = "diff_v1", .attn_logit_softcap = 4}},
      {"v2_softcap_sink",
       {.kind = "diff_v2",
        .softmax_denominator = SoftmaxDenominator::sink,
        .attn_logit_softcap = 4}},
      {"v2_exponential_subln",
       {.kind = "diff_v2", .lambda = LambdaKind::exponential, .subln = true}},
      {"selected_blocks", {.kind = "softmax", .block_size = 16, .num_selected_blocks = 2}},
      {"v1_selected_blocks", {.kind = "diff_v1", .block_size = 16, .num_selected_blocks = 2}},
      {"v2_selected_blocks", {.kind = "diff_v2", .block_size = 16, .num_selected_blocks = 3}},
      {"v2_blocks_selected_separately",
       {.kind = "diff_v2",
        .block_size = 16,
        .num_selected_blocks = 2,
        .block_selection = BlockSelection::separately}},
  };
  variants.insert(variants.end(), ablations.begin(), ablations.end());
  return variants;
}

/// A named mixture of experts.
struct MoeVariant {
  std::string name;
  MoeConfig moe;
};

/// Returns the full product {softmax, sigmoid} x {normalized, plain} x {none, shared experts} x
/// {none, both losses}; sigmoid also has the bias for balancing.
inline std::vector<MoeVariant> moe_variants() {
  std::vector<MoeVariant> variants;
  for (const auto& score : kNames<RouterScore>) {
    for (const bool normalized : {true, false}) {
      for (const Index shared : {0, 1}) {
        for (const bool losses : {false, true}) {
          const bool sigmoid = score.value == RouterScore::sigmoid;
          variants.push_back({std::string(score.name) + (normalized ? "/normalized" : "/plain") +
                                  (shared > 0 ? "/shared" : "") + (losses ? "/losses" : ""),
                              {.num_experts = 3,
                               .num_experts_per_tok = 2,
                               .num_shared_experts = shared,
                               .moe_intermediate_size = 3,
                               .scoring_func = score.value,
                               .norm_topk_prob = normalized,
                               .router_aux_loss_coef = losses ? 0.3 : 0,
                               .router_z_loss_coef = losses ? 0.1 : 0,
                               .router_bias_update_rate = sigmoid ? 0.01 : 0}});
        }
      }
    }
  }
  return variants;
}

/// Returns the document starts of (B, T) tokens, with up to three documents per row. Rows have
/// different documents.
inline DocumentOffsets packed_documents(Index batch, Index seq) {
  std::vector<std::int32_t> starts;
  for (Index b = 0; b < batch; ++b) {
    const Index second = seq / 3 + b, third = 2 * seq / 3 + 1;  // short rows have fewer documents
    for (Index t = 0; t < seq; ++t)
      starts.push_back(static_cast<std::int32_t>(t >= third ? third : t >= second ? second : 0));
  }
  return std::make_shared<const std::vector<std::int32_t>>(std::move(starts));
}

/// Checks the gradients of x (B, T, C) and of every parameter of one attention layer, or of two
/// layers that share keys and values if config.yoco_self_layers is 1. Parameters are drawn large
/// enough that no gradient is trivial. Gradients that vanish for T = 1 are expected to do so.
GradcheckResult check_layer(const ModelConfig& config, Index batch, Index seq,
                            const DocumentOffsets& document_offsets = nullptr);

/// Checks the gradient of every parameter of a whole model for the summed loss of (2, 4) tokens
/// with ids below 7.
GradcheckResult check_model(const ModelConfig& config,
                            const DocumentOffsets& document_offsets = nullptr);

struct GradcheckCase {
  std::string group;  ///< "softmax", "layer/diff_v2", "model/diff_v1"
  std::string name;   ///< begins with the group: "layer/diff_v2/gqa/window/rope/qk_norm/d4/T17"
  std::function<GradcheckResult()> run;
};

/// Returns all cases ordered by group. The layers are a full product: {every attention variant} x
/// {mha, gqa, mqa} x {full, window, packed} x {rope with even, norope with odd heads} x {qk_norm,
/// plain} x {two head sizes} x {T = 1, 2, 3, 17, 64}. V1, which pairs its keys, has no mqa.
/// Groups "cross/..." are layers of a cross-decoder, without window and with T = 1, 2, 3.
std::vector<GradcheckCase> gradcheck_cases();

/// Regular expression of the cases that `difftape gradcheck` checks by default: every op case, and
/// of every attention variant a few layers and one model, all with grouped queries.
inline constexpr const char* kSelectedCases =
    "^[a-z]+[a-z_]*(/[a-z0-9_]+)?$"
    "|^(layer|cross)/.*/gqa/(full/rope/plain/d2/T17|window/norope/qk_norm/d3/T3"
    "|packed/rope/qk_norm/d4/T3)$"
    "|^model/.*/gqa$"
    "|^model/moe/.*/shared/losses$";

}  // namespace difftape::app
