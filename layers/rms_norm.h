#pragma once
#include "autograd/ops.h"

namespace difftape {

/// Root-mean-square norm with one weight per element.
class RmsNorm {
 public:
  /// Declares `<module>.weight` (width), ones.
  RmsNorm(const Module& module, Index width, double eps);
  /// Normalizes over the last axis.
  Var operator()(const Var& x) const;

 private:
  std::string name_;
  Parameter& weight_;
  double eps_;
};

}  // namespace difftape
