#include "layers/mlp.h"

#include "core/error.h"
#include "layers/init.h"

namespace difftape {

Mlp::Mlp(ParameterSet& parameters, const std::string& name, const ModelConfig& config)
    : gate_(parameters, name + ".gate_proj", config.d_model, config.d_ff, kProjectionStd),
      up_(parameters, name + ".up_proj", config.d_model, config.d_ff, kProjectionStd),
      down_(parameters, name + ".down_proj", config.d_ff, config.d_model,
            residual_std(config.num_layers)) {}

Var Mlp::operator()(const Var& x, const Var& residual) const {
  const Var up = up_(x), gate = gate_(x);
  const NameScope scope(down_.name());
  return swiglu_linear(gate, up, down_.weight(x.tape()), residual);
}

}  // namespace difftape
