#pragma once
// The attention half of a block. A kind (softmax, diff_v1, ...) is a preset of independent parts:
// how heads are wired, where lambda comes from, whether each head is normalised. One file a kind.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "layers/attention/lambda.h"
#include "layers/model_config.h"
#include "layers/norm.h"

namespace difftape {

/// What a kind needs to know to declare its parameters.
struct AttentionPlace {
  ParameterSet& parameters;
  std::string name;  ///< for example model.layers.0.self_attn
  Index layer;       ///< from 0
  const ModelConfig& config;

  Index head_dim() const;
  Index kv_heads() const;
};

/// V1's per-head norm and the fixed factor after it.
struct HeadNorm {
  RmsNorm norm;
  double factor;
};

struct AttentionParts {
  HeadLayout layout;
  Index value_dim = 0;                   ///< width of one value head
  std::unique_ptr<LambdaRule> lambda{};  ///< with two maps
  std::optional<HeadNorm> head_norm{};
};

// The kinds, each in its file, with its source.
AttentionParts softmax_attention(const AttentionPlace& place);
AttentionParts diff_v1_attention(const AttentionPlace& place);
AttentionParts diff_v2_attention(const AttentionPlace& place);

/// Names that model.attention.kind accepts, in alphabetical order.
std::vector<std::string> attention_kinds();
/// True if the kind joins heads of the baseline into pairs, so that their numbers must be even.
bool attention_pairs_heads(const std::string& kind);

class Attention {
 public:
  /// Declares `<name>.{q_proj,k_proj,v_proj,o_proj}.weight` and what the kind adds. Throws
  /// ConfigError for a kind that is not in attention_kinds().
  Attention(const AttentionPlace& place, std::shared_ptr<const RopeTable> rope);
  /// x (B, T, C) -> (B, T, C), causal.
  Var operator()(const Var& x) const;

  const HeadLayout& layout() const { return parts_.layout; }
  Index value_dim() const { return parts_.value_dim; }
  bool has_head_norm() const { return parts_.head_norm.has_value(); }

 private:
  std::string name_;
  Index head_dim_;
  AttentionParts parts_;
  Linear q_proj_, k_proj_, v_proj_, o_proj_;
  std::shared_ptr<const RopeTable> rope_;
};

}  // namespace difftape
