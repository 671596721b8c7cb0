#include "layers/linear.h"

#include "core/error.h"
#include "core/name_scope.h"

namespace difftape {

Linear::Linear(const Module& module, Index in, Index out, double std)
    : name_(module.name),
      weight_(module.declare("weight", {out, in}, Role::projection, Init::normal(std))) {}

Var Linear::operator()(const Var& x, const Var& residual) const {
  const NameScope scope(name_);
  return linear(x, weight(x.tape()), residual);
}

}  // namespace difftape
