#pragma once
// The feed-forward half of a block: down(silu(gate(x)) up(x)).

#include "layers/linear.h"
#include "layers/model_config.h"

namespace difftape {

class Mlp {
 public:
  /// Declares `<name>.{gate_proj,up_proj,down_proj}.weight`.
  Mlp(ParameterSet& parameters, const std::string& name, const ModelConfig& config);
  /// residual + mlp(x), both (B, T, C).
  Var operator()(const Var& x, const Var& residual) const;

 private:
  Linear gate_, up_, down_;
};

}  // namespace difftape
