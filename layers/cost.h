#pragma once
// What a model costs, counted from its configuration without building or running it.

#include <string>
#include <utility>
#include <vector>

#include "layers/language_model.h"

namespace difftape {

struct ModelCost {
  using Counts = std::vector<std::pair<std::string, Index>>;

  /// Parameters by component, in the order embedding, attention, mlp, norms, head.
  Counts parameters;
  /// Those of attention by part, in the order of declaration: "lambda", "q_proj", ...
  Counts attention_parameters;
  Index total_parameters = 0;
  /// Floating-point operations of forward and backward for one token at sequence length `seq`; a
  /// multiply-add counts 2, causal attention half the square, backward twice forward. Lookups,
  /// norms and other element-wise work are not counted.
  double train_flops_per_token = 0;
  double attention_flops_per_token = 0;  ///< the part of it that grows with seq
  /// The part of it that multiplies tokens by the weights of attention.
  double attention_projection_flops_per_token = 0;
  /// Numbers of keys and values that generation keeps a token.
  Index kv_cache_per_token = 0;
  Index d_ff = 0;  ///< after model.match_params
};

ModelCost model_cost(const ModelConfig& config, Index seq);

}  // namespace difftape
