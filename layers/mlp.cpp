#include "layers/mlp.h"

#include "core/name_scope.h"

namespace difftape {

Mlp::Mlp(const Module& module, const ModelConfig& config, Index width)
    : gate_(module / "gate_proj", config.d_model, width,
            init_rule(config).projection(config.d_model)),
      up_(module / "up_proj", config.d_model, width, init_rule(config).projection(config.d_model)),
      down_(module / "down_proj", width, config.d_model, init_rule(config).to_residual(width)) {}

Var Mlp::operator()(const Var& x, const Var& residual) const {
  const Var up = up_(x), gate = gate_(x);
  const NameScope scope(down_.name());
  return swiglu_linear(gate, up, down_.weight(x.tape()), residual);
}

void Mlp::add_to(Experts& weights, Tape& tape) const {
  weights.gate.push_back(gate_.weight(tape));
  weights.up.push_back(up_.weight(tape));
  weights.down.push_back(down_.weight(tape));
}

}  // namespace difftape
