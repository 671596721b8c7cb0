#include "layers/linear.h"

#include "core/error.h"
#include "core/name_scope.h"

namespace difftape {

RmsNorm::RmsNorm(ParameterSet& parameters, const std::string& name, Index width, double eps)
    : name_(name),
      weight_(parameters.declare(name + ".weight", {width}, Role::norm_weight, Init::constant(1))),
      eps_(eps) {}

Var RmsNorm::operator()(const Var& x) const {
  const NameScope scope(name_);
  return rms_norm(x, x.tape().parameter(weight_), eps_);
}

Linear::Linear(ParameterSet& parameters, const std::string& name, Index in, Index out, double std)
    : name_(name),
      weight_(
          parameters.declare(name + ".weight", {out, in}, Role::projection, Init::normal(std))) {}

Var Linear::operator()(const Var& x, const Var& residual) const {
  const NameScope scope(name_);
  return linear(x, x.tape().parameter(weight_), residual);
}

}  // namespace difftape
