#include "layers/linear.h"

#include "core/error.h"

namespace difftape {

Linear::Linear(ParameterSet& parameters, const std::string& name, Index in, Index out, double std)
    : name_(name),
      weight_(
          parameters.declare(name + ".weight", {out, in}, Role::projection, Init::normal(std))) {}

Var Linear::operator()(const Var& x, const Var& residual) const {
  const NameScope scope(name_);
  return linear(x, x.tape().parameter(weight_), residual);
}

}  // namespace difftape
