#pragma once
// The attention layer of a block, built from the fields of its variant: head mapping, lambda,
// softmax denominator, norm and gate.

#include <memory>
#include <optional>
#include <string>

#include "layers/attention/key_values.h"
#include "layers/attention/lambda.h"

namespace difftape {

/// Epsilon of the norm of each head, as in the reference code of V1; independent of norm_eps.
inline constexpr double kSublnEps = 1e-5;

class Attention {
 public:
  /// Declares the `weight` of q_proj, k_proj, v_proj and o_proj, and parameters that the fields
  /// add: lambda, `sinks` (query heads), `subln.weight` (value width), `gate_proj.weight`,
  /// `q_norm.weight` and `k_norm.weight` (head_dim). A null `rope` means no positions. A layer of a
  /// cross-decoder (shares_key_values) declares no k_proj, v_proj and k_norm.
  Attention(const AttentionArgs& args, std::shared_ptr<const RopeTable> rope);
  /// Maps x (B, T, C) to (B, T, C), causal, within documents, after the tokens of a cache, plus
  /// `residual` if defined. A layer of a cross-decoder reads pass.shared, or a cache that ends with
  /// the tokens of x. Observers are not called with a cache or for a context rule, whose maps
  /// are unknown.
  Var operator()(const Var& x, const Pass& pass = {}, const Var& residual = {}) const;

  const HeadMapping& mapping() const { return sizes_.mapping; }
  Index value_dim() const { return sizes_.value_dim; }

 private:
  KeyValues key_values(const Var& x, KvCache* cache, const KeyValues& shared) const;
  AttentionOperands operands_of(const Var& x, KvCache* cache, const Pass& pass) const;
  Var sink_logits(Tape& tape) const;
  Var context_of(const AttentionOperands& in, KvCache* cache, Tensor* stats) const;
  Var finished(Var context, const Var& x) const;

  AttentionFields fields_;
  std::string name_;
  Index layer_;
  HeadSizes sizes_;
  HeadProjection q_;
  std::optional<KeyValueProjection> kv_;  ///< empty in a cross-decoder
  Linear o_proj_;
  std::unique_ptr<LambdaRule> lambda_;
  ContextRule context_rule_;  ///< empty: the fused op
  std::optional<RmsNorm> subln_;
  double head_factor_ = 1;  ///< factor after subln
  Parameter* sinks_ = nullptr;
  std::optional<HeadProjection> gate_;
};

}  // namespace difftape
