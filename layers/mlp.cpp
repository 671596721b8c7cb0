#include "layers/mlp.h"

#include "layers/init.h"

namespace difftape {

Mlp::Mlp(ParameterSet& parameters, const std::string& name, const ModelConfig& config)
    : gate_(parameters, name + ".gate_proj", config.d_model, config.d_ff, kProjectionStd),
      up_(parameters, name + ".up_proj", config.d_model, config.d_ff, kProjectionStd),
      down_(parameters, name + ".down_proj", config.d_ff, config.d_model,
            residual_std(config.num_layers)) {}

Var Mlp::operator()(const Var& x, const Var& residual) const {
  return down_.of_swiglu(gate_(x), up_(x), residual);
}

}  // namespace difftape
