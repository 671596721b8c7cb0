#pragma once
// What the rules that keep Adam's moments have in common.

#include <cmath>

#include "optim/optim_config.h"
#include "optim/update_rule.h"

namespace difftape {

/// The factors of one step, rounded once from double.
struct AdamFactors {
  real grad_scale, beta1, beta2, rest1, rest2;
  real step_size;          // lr / (1 - beta1^t)
  real inverse_root_bias;  // 1 / sqrt(1 - beta2^t)
  real eps;

  AdamFactors(const OptimConfig& config, const StepInput& step)
      : grad_scale(static_cast<real>(step.grad_scale)),
        beta1(static_cast<real>(config.betas[0])),
        beta2(static_cast<real>(config.betas[1])),
        rest1(static_cast<real>(1 - config.betas[0])),
        rest2(static_cast<real>(1 - config.betas[1])),
        eps(static_cast<real>(config.eps)) {
    const auto t = static_cast<double>(step.number);
    step_size = static_cast<real>(step.lr / (1 - std::pow(config.betas[0], t)));
    inverse_root_bias = static_cast<real>(1 / std::sqrt(1 - std::pow(config.betas[1], t)));
  }
};

}  // namespace difftape
