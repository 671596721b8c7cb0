#include "layers/linear.h"

#include "core/error.h"

namespace difftape {

Linear::Linear(ParameterSet& parameters, const std::string& name, Index in, Index out, double std)
    : name_(name),
      weight_(
          parameters.declare(name + ".weight", {out, in}, Role::projection, Init::normal(std))) {}

Var Linear::operator()(const Var& x, const Var& addend) const {
  const ErrorScope scope(name_);
  return linear(x, x.tape().parameter(weight_), addend);
}

Var Linear::of_swiglu(const Var& gate, const Var& up, const Var& addend) const {
  const ErrorScope scope(name_);
  return swiglu_linear(gate, up, up.tape().parameter(weight_), addend);
}

}  // namespace difftape
