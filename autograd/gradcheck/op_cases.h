#pragma once
// One line an op: how its gradient is checked, and which primitives it must equal.

#include "autograd/gradcheck/gradcheck.h"

namespace difftape {

struct OpCase {
  std::string op;       ///< the name it records on the tape
  std::string variant;  ///< what this case is about, empty for the plain one
  std::vector<Shape> inputs;
  OpFunction f;
  OpFunction composition{};  ///< the same function from primitives, for coarse ops
  double scale = 1;          ///< inputs are N(0, scale^2) ...
  bool positive = false;     ///< ... or their absolute values + 0.5

  std::string name() const { return variant.empty() ? op : op + "/" + variant; }
  /// Reproducible inputs of the case.
  std::vector<Tensor> make_inputs() const;
};

std::vector<OpCase> op_cases();

}  // namespace difftape
