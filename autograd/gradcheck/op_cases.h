#pragma once
// Gradient checks of every op, one line per op. Coarse ops must equal their composition from
// primitives (compositions.h), which also bounds their rounding errors.

#include "autograd/gradcheck/gradcheck.h"
#include "autograd/gradcheck/rounding.h"
#include "autograd/ops.h"

namespace difftape {

struct OpCase {
  std::string op;       ///< its name on the tape
  std::string variant;  ///< empty for the plain case
  std::vector<Shape> inputs;
  OpFunction f;
  OpFunction composition{};  ///< the same function from primitives, for coarse ops
  /// The same function with bounds of its rounding errors; empty for an op without composition that
  /// rounding.h lacks.
  std::function<BoundedVar(std::vector<BoundedVar>&)> bounded{};
  double scale = 1;       ///< inputs are N(0, scale^2) ...
  bool positive = false;  ///< ... or their absolute values + 0.5

  std::string name() const { return variant.empty() ? op : op + "/" + variant; }
  /// Returns reproducible inputs.
  std::vector<Tensor> make_inputs() const;
};

std::vector<OpCase> op_cases();

}  // namespace difftape
