#include "layers/mlp.h"

#include "core/name_scope.h"

namespace difftape {

Mlp::Mlp(const Module& module, const ModelConfig& config)
    : gate_(module / "gate_proj", config.d_model, config.d_ff,
            init_rule(config).projection(config.d_model)),
      up_(module / "up_proj", config.d_model, config.d_ff,
          init_rule(config).projection(config.d_model)),
      down_(module / "down_proj", config.d_ff, config.d_model,
            init_rule(config).to_residual(config.d_ff)) {}

Var Mlp::operator()(const Var& x, const Var& residual) const {
  const Var up = up_(x), gate = gate_(x);
  const NameScope scope(down_.name());
  return swiglu_linear(gate, up, down_.weight(x.tape()), residual);
}

}  // namespace difftape
