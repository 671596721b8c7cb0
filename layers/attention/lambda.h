#pragma once
// Where the weight of the second softmax map comes from.

#include <memory>

#include "layers/linear.h"

namespace difftape {

class LambdaRule {
 public:
  virtual ~LambdaRule() = default;
  /// lambda for the layer's input x (B, T, C): one scalar, or (B, T, output heads).
  virtual Var operator()(const Var& x) const = 0;
};

/// V1's initial value of lambda: 0.8 - 0.6 exp(-0.3 layer), layers counted from 0 (Ye et al. 2024,
/// section 2.1).
double lambda_init_of_layer(Index layer);

/// V1: exp(lambda_q1 . lambda_k1) - exp(lambda_q2 . lambda_k2) + lambda_init, one scalar a layer
/// (Ye et al. 2024, equation 2). Declares `<name>.lambda_{q1,k1,q2,k2}` (head_dim).
std::unique_ptr<LambdaRule> exponential_lambda(ParameterSet& parameters, const std::string& name,
                                               Index head_dim, double lambda_init);

/// V2: sigmoid(x W^T), one a token and output head (Ye et al. 2026). Declares
/// `<name>.lambda_proj.weight` (heads, d_model).
std::unique_ptr<LambdaRule> sigmoid_lambda(ParameterSet& parameters, const std::string& name,
                                           Index d_model, Index heads);

}  // namespace difftape
