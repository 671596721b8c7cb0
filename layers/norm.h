#pragma once
// Root-mean-square norm with a weight an element.

#include "autograd/ops.h"

namespace difftape {

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

}  // namespace difftape
