#include "layers/rms_norm.h"

#include "core/name_scope.h"

namespace difftape {

RmsNorm::RmsNorm(const Module& module, Index width, double eps)
    : name_(module.name),
      weight_(module.declare("weight", {width}, Role::norm_weight, Init::constant(1))),
      eps_(eps) {}

Var RmsNorm::operator()(const Var& x) const {
  const NameScope scope(name_);
  return rms_norm(x, x.tape().parameter(weight_), eps_);
}

}  // namespace difftape
