#pragma once
#include <deque>
#include <optional>

#include "layers/mlp.h"
#include "layers/pass.h"

namespace difftape {

/// The part of a model (ModelPart) with the experts. A token uses k / E of its parameters.
inline constexpr std::string_view kExperts = "experts";

/// A mixture of SwiGLU experts in place of an MLP: k of the E experts compute each token, and so do
/// all shared experts. The router computes in full precision.
class Moe {
 public:
  /// Declares, below the name of the module: gate.weight (E, C), the router; experts.0 to
  /// experts.(E-1) and shared_experts with the weights of an MLP; and, if router_bias_update_rate
  /// is not 0, gate.e_score_correction_bias (E), zeros.
  Moe(const Module& module, const ModelConfig& config);
  /// Returns residual + moe(x), both (B, T, C), and shows the routing to the observer. If the
  /// router has a loss and `router_loss` is not null, stores it there.
  Var operator()(const Var& x, const Var& residual, const Pass& pass, Var* router_loss) const;

 private:
  Routed routed(const Var& x, const Pass& pass, Var* router_loss) const;

  std::string name_;
  Index layer_;
  RouterRule rule_;
  RouterLosses losses_;
  Parameter& gate_;
  Parameter* bias_ = nullptr;
  std::deque<Mlp> experts_;
  std::optional<Mlp> shared_;
};

}  // namespace difftape
