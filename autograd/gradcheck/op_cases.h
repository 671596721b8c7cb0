#pragma once
// Gradient checks of every op, one line per op, and compositions from primitives that coarse ops
// must equal.

#include "autograd/gradcheck/gradcheck.h"
#include "autograd/ops.h"

namespace difftape {

struct OpCase {
  std::string op;       ///< its name on the tape
  std::string variant;  ///< empty for the plain case
  std::vector<Shape> inputs;
  OpFunction f;
  OpFunction composition{};  ///< the same function from primitives, for coarse ops
  double scale = 1;          ///< inputs are N(0, scale^2) ...
  bool positive = false;     ///< ... or their absolute values + 0.5

  std::string name() const { return variant.empty() ? op : op + "/" + variant; }
  /// Returns reproducible inputs.
  std::vector<Tensor> make_inputs() const;
};

std::vector<OpCase> op_cases();

}  // namespace difftape

namespace difftape::composition {

// Coarse ops from primitives, formula by formula: slow, obvious, and independent of the kernels.
Var embedding(std::span<const std::int32_t> tokens, const Shape& shape, const Var& table);
Var linear(const Var& x, const Var& weight, const Var& residual = {});
Var rms_norm(const Var& x, const Var& weight, double eps);
Var rope(const Var& x, const RopeRule& rule, Index first = 0);
Var swiglu_linear(const Var& gate, const Var& up, const Var& weight, const Var& residual = {});
Var attention(const AttentionOperands& in);
Var cross_entropy(const Var& hidden, const Var& weight, std::span<const std::int32_t> targets,
                  const LossOptions& options = {});
Var route(const Var& logits, const RouterRule& rule, std::span<const real> bias = {});
Var router_loss(const Var& logits, RouterScore score, const Routing& routing,
                const RouterLosses& weights);
/// Every expert computes every token; a mask keeps the chosen.
Var experts(const Var& x, const Routed& routed, const Experts& weights, const Var& residual = {});

}  // namespace difftape::composition
