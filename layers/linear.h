#pragma once
#include "autograd/ops.h"

namespace difftape {

/// The projection x W^T, without bias.
class Linear {
 public:
  /// Declares `<module>.weight` (out, in), N(0, std^2).
  Linear(const Module& module, Index in, Index out, double std);
  /// Maps x (..., in) to (..., out), plus `residual` if defined.
  Var operator()(const Var& x, const Var& residual = {}) const;

  const std::string& name() const { return name_; }
  /// Returns W (out, in), as a tensor and for ops that include the projection.
  const Tensor& weights() const { return weight_.value; }
  Var weight(Tape& tape) const { return tape.parameter(weight_); }

 private:
  std::string name_;
  Parameter& weight_;
};

}  // namespace difftape
