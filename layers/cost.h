#pragma once
// The cost of a model, counted from its configuration without building or running it.

#include <string>
#include <utility>
#include <vector>

#include "layers/language_model.h"

namespace difftape {

struct ModelCost {
  using Counts = std::vector<std::pair<std::string, Index>>;

  /// Parameters by component: embedding, attention, mlp, norms, head.
  Counts parameters;
  /// Attention parameters by part, in order of declaration: "lambda", "q_proj", ...
  Counts attention_parameters;
  Index total_parameters = 0;
  /// Parameters that a token uses: all but the experts that it is not routed to.
  Index active_parameters = 0;
  /// Floating-point operations of forward and backward per token at sequence length `seq`. A
  /// multiply-add counts 2, causal attention half the square, backward twice forward. Block-sparse
  /// attention counts the keys read, or an upper bound if maps choose separately or with a window.
  /// Lookups, norms, choices of blocks and element-wise work are not counted.
  double train_flops_per_token = 0;
  double attention_flops_per_token = 0;  ///< part of train_flops_per_token that grows with seq
  /// Part of train_flops_per_token for projections of attention.
  double attention_projection_flops_per_token = 0;
  /// Floating-point operations that read a prompt of `seq` tokens and return the logits after it; a
  /// cross-decoder and the output head process the last token only.
  double prefill_flops = 0;
  /// Elements of keys and values cached per token.
  Index kv_cache_per_token = 0;
  Index mlp_width = 0;  ///< d_ff, or moe_intermediate_size, after model.match_params
};

ModelCost model_cost(const ModelConfig& config, Index seq);

}  // namespace difftape
