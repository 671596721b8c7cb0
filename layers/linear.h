#pragma once
// What layers are made of: projections and norms.

#include "autograd/ops.h"
#include "core/real.h"

namespace difftape {

/// Root-mean-square norm with a weight an element.
class RmsNorm {
 public:
  /// Declares `<name>.weight` (width), ones.
  RmsNorm(ParameterSet& parameters, const std::string& name, Index width, double eps);
  /// Over the last axis of x.
  Var operator()(const Var& x) const;

 private:
  std::string name_;
  Parameter& weight_;
  double eps_;
};

/// x W^T without bias.
class Linear {
 public:
  /// Declares `<name>.weight` (out, in), N(0, std^2).
  Linear(ParameterSet& parameters, const std::string& name, Index in, Index out, double std);
  /// x (..., in) -> (..., out), plus `residual` if there is one.
  Var operator()(const Var& x, const Var& residual = {}) const;

  /// The name it was declared with, without `.weight`.
  const std::string& name() const { return name_; }
  /// (out, in): as it is, and for ops that hold the projection.
  const Tensor& weights() const { return weight_.value; }
  Var weight(Tape& tape) const { return tape.parameter(weight_); }

 private:
  std::string name_;
  Parameter& weight_;
};

}  // namespace difftape
