#pragma once
#include "layers/linear.h"
#include "layers/model_config.h"

namespace difftape {

/// The feed-forward layer: down(silu(gate(x)) up(x)).
class Mlp {
 public:
  /// Declares `<module>.{gate_proj,up_proj,down_proj}.weight`, with `width` hidden features.
  Mlp(const Module& module, const ModelConfig& config, Index width);
  /// Returns residual + mlp(x), both (B, T, C).
  Var operator()(const Var& x, const Var& residual) const;
  /// Appends the three weights, for an op that includes the layer.
  void add_to(Experts& weights, Tape& tape) const;

 private:
  Linear gate_, up_, down_;
};

}  // namespace difftape
