#pragma once
// x W^T without bias.

#include "autograd/ops.h"

namespace difftape {

class Linear {
 public:
  /// Declares `<name>.weight` (out, in), N(0, std^2).
  Linear(ParameterSet& parameters, const std::string& name, Index in, Index out, double std);
  /// x (..., in) -> (..., out), plus `addend` if there is one.
  Var operator()(const Var& x, const Var& addend = {}) const;
  /// addend + the projection of silu(gate) up; gate, up (..., in).
  Var of_swiglu(const Var& gate, const Var& up, const Var& addend) const;

 private:
  std::string name_;
  Parameter& weight_;
};

}  // namespace difftape
