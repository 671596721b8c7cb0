#pragma once
// How a parameter changes in a step: all that optimizers differ in, and the rules that there are.
// In their formulas g is grad_scale * gradient, t the number of the step, counted from 1, and lr
// the learning rate; what is kept starts at zero, and weight decay came first. Each is headed by
// its formulas and source in its file.

#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "autograd/parameter.h"
#include "optim/optim_config.h"

namespace difftape {

/// What a rule keeps of a parameter from step to step, in its shape, under its name in checkpoints.
struct StateTensor {
  const char* name;
  Tensor value;
};

/// What a step of one parameter is taken with.
struct StepInput {
  Index number;       ///< of the step, counted from 1
  double lr;          ///< of this parameter
  double grad_scale;  ///< factor on its gradient
};

/// Consecutive elements of a parameter.
struct Elements {
  Index count;
  real keep;                   ///< what weight decay leaves of each value
  const real* grad;            ///< without grad_scale
  const real* direction;       ///< of Prepared; null if there is none
  real* value;                 ///< to be updated
  std::array<real*, 2> state;  ///< in the order of the rule's names; null beyond them
};

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  /// The names of what it keeps; it all starts at zero.
  virtual std::vector<const char*> state_names() const = 0;

  /// Whether the rule is made for this parameter; AdamW updates those that it is not made for.
  virtual bool takes(const Parameter&) const { return true; }

  /// What is known of a parameter before the first of its elements changes.
  struct Prepared {
    double lr_scale = 1;  ///< factor on its learning rate, and on weight decay that follows it
    Tensor direction{};   ///< the shape of the parameter
  };
  /// Does what needs all elements at once; it may update `state`. On the calling thread, for one
  /// parameter after another.
  virtual Prepared prepare(const StepInput&, const Parameter&, std::span<StateTensor>) const {
    return {};
  }

  /// Updates elements, each by itself. On several threads.
  virtual void update(const StepInput& step, const Elements& elements) const = 0;
};

std::unique_ptr<UpdateRule> make_adamw(const OptimConfig& config);
std::unique_ptr<UpdateRule> make_stable_adamw(const OptimConfig& config);
std::unique_ptr<UpdateRule> make_lion(const OptimConfig& config);
std::unique_ptr<UpdateRule> make_sgd(const OptimConfig& config);
std::unique_ptr<UpdateRule> make_muon(const OptimConfig& config);

/// The rule of a kind, with the numbers of the configuration.
std::unique_ptr<UpdateRule> make_rule(OptimizerKind kind, const OptimConfig& config);

/// What the rules that keep Adam's moments have in common: the factors of one step, rounded once
/// from double.
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
