#pragma once
#include "autograd/ops.h"

namespace difftape {

/// x W^T without bias.
class Linear {
 public:
  /// Declares `<module>.weight` (out, in), N(0, std^2).
  Linear(const Module& module, Index in, Index out, double std);
  /// x (..., in) -> (..., out), plus `residual` if there is one.
  Var operator()(const Var& x, const Var& residual = {}) const;

  /// The name of its module.
  const std::string& name() const { return name_; }
  /// (out, in): as it is, and for ops that hold the projection.
  const Tensor& weights() const { return weight_.value; }
  Var weight(Tape& tape) const { return tape.parameter(weight_); }

 private:
  std::string name_;
  Parameter& weight_;
};

}  // namespace difftape
