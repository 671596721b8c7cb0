#pragma once
// Rules for lambda, the weight of the second softmax map.

#include <memory>

#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "layers/attention/fields.h"

namespace difftape {

class LambdaRule {
 public:
  virtual ~LambdaRule() = default;
  /// Returns lambda for the layer's input x (B, T, C): one scalar, or (B, T, output heads).
  virtual Var operator()(const Var& x) const = 0;
  /// Returns the fixed factor after the norm of a head: 1 - lambda_init, or 1.
  virtual double head_factor() const { return 1; }
};

/// The sizes of the layer that a rule reads.
struct LambdaArgs {
  Index head_dim, d_model, heads;
  double projection_std;  ///< of initial weights
};

/// Returns V1's initial lambda, 0.8 - 0.6 exp(-0.3 layer), with layers from 0 (Ye et al. 2024,
/// section 2.1).
double lambda_init_of_layer(Index layer);

/// Makes the rule that the fields name:
///   exponential  exp(lambda_q1 . lambda_k1) - exp(lambda_q2 . lambda_k2) + lambda_init, one scalar
///                per layer (Ye et al. 2024, equation 2); declares `<layer>.lambda_{q1,k1,q2,k2}`
///                (head_dim)
///   sigmoid      sigmoid(x W^T), one per token and output head (Ye et al. 2026); declares
///                `<layer>.lambda_proj.weight` (heads, d_model)
///   raw          x W^T, likewise (V2 article, ablation 3)
///   one          1, no parameters (V2 article, ablation 2)
std::unique_ptr<LambdaRule> make_lambda(const AttentionFields& fields, const Module& layer,
                                        const LambdaArgs& args);

}  // namespace difftape
