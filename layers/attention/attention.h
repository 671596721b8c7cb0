#pragma once
// The attention layer of a block, built from the fields of its variant: head mapping, lambda,
// softmax denominator, norm and gate.

#include <memory>
#include <optional>
#include <string>

#include "layers/attention/context.h"
#include "layers/attention/lambda.h"
#include "layers/linear.h"
#include "layers/model_config.h"
#include "layers/pass.h"
#include "layers/rms_norm.h"

namespace difftape {

/// Epsilon of the norm of each head, as in the reference code of V1; independent of norm_eps.
inline constexpr double kSublnEps = 1e-5;

class Attention {
 public:
  /// Declares the `weight` of q_proj, k_proj, v_proj and o_proj, and parameters that the fields
  /// add: lambda, `sinks` (query heads), `subln.weight` (value width), `gate_proj.weight`,
  /// `q_norm.weight` and `k_norm.weight` (head_dim). A null `rope` means no positions.
  Attention(const AttentionArgs& args, std::shared_ptr<const RopeTable> rope);
  /// Maps x (B, T, C) to (B, T, C), causal, within documents, after the tokens of a cache, plus
  /// `residual` if defined. Observers are not called with a cache or for a context rule, whose maps
  /// are unknown.
  Var operator()(const Var& x, const Pass& pass = {}, const Var& residual = {}) const;

  const HeadMapping& mapping() const { return mapping_; }
  Index value_dim() const { return value_dim_; }

 private:
  AttentionOperands operands_of(const Var& x, Index position, const Visibility& visible) const;
  Var query_or_key(const Linear& projection, const std::optional<RmsNorm>& norm, const Var& x,
                   Index heads, Index position) const;
  Var sink_logits(Tape& tape) const;
  Var context_of(const AttentionOperands& in, Tensor* stats) const;
  Var context_after(KvCache& cache, const AttentionOperands& in) const;
  Var finished(Var context, const Var& x) const;

  AttentionFields fields_;
  std::string name_;
  Index layer_;
  Index head_dim_;
  HeadMapping mapping_;
  Index value_dim_;  ///< width of one value head
  Linear q_proj_, k_proj_, v_proj_, o_proj_;
  std::unique_ptr<LambdaRule> lambda_;
  ContextRule context_rule_;  ///< empty: the fused op
  std::optional<RmsNorm> q_norm_, k_norm_, subln_;
  double head_factor_ = 1;  ///< factor after subln
  Parameter* sinks_ = nullptr;
  std::optional<Linear> gate_;
  std::shared_ptr<const RopeTable> rope_;
};

}  // namespace difftape
