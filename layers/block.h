#pragma once
// The feed-forward layer, and one transformer block.

#include "layers/attention/attention.h"
#include "layers/linear.h"
#include "layers/model_config.h"

namespace difftape {

/// down(silu(gate(x)) up(x)).
class Mlp {
 public:
  /// Declares `<name>.{gate_proj,up_proj,down_proj}.weight`.
  Mlp(ParameterSet& parameters, const std::string& name, const ModelConfig& config);
  /// residual + mlp(x), both (B, T, C).
  Var operator()(const Var& x, const Var& residual) const;

 private:
  Linear gate_, up_, down_;
};

/// Pre-norm: x + attention(norm(x)), then x + mlp(norm(x)).
class TransformerBlock {
 public:
  /// Declares the parameters below `model.layers.<layer>`.
  TransformerBlock(ParameterSet& parameters, const ModelConfig& config, Index layer,
                   std::shared_ptr<const RopeTable> rope);
  /// x (B, T, C) -> (B, T, C), with a call of the observer if there is one.
  Var operator()(const Var& x, const Pass& pass = {}) const;

  const Attention& attention() const { return attention_; }

 private:
  Index layer_;
  RmsNorm input_norm_;
  Attention attention_;
  RmsNorm post_attention_norm_;
  Mlp mlp_;
};

}  // namespace difftape
