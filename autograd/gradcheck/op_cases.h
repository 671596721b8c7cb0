#pragma once
// One line an op: how its gradient is checked, and which primitives it must equal; and these
// compositions.

#include "autograd/gradcheck/gradcheck.h"
#include "autograd/ops.h"

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

namespace difftape::composition {

// The coarse ops written with primitives, formula by formula: slow, obvious, and independent of the
// kernels they are compared with.
Var embedding(std::span<const std::int32_t> tokens, const Shape& shape, const Var& table);
Var linear(const Var& x, const Var& weight, const Var& residual = {});
Var rms_norm(const Var& x, const Var& weight, double eps);
Var rope(const Var& x, const RopeRule& rule, Index first = 0);
Var swiglu_linear(const Var& gate, const Var& up, const Var& weight, const Var& residual = {});
Var attention(const AttentionOperands& in);
Var cross_entropy(const Var& hidden, const Var& weight, std::span<const std::int32_t> targets,
                  const LossOptions& options = {});

}  // namespace difftape::composition
