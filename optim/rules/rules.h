#pragma once
// Update rules. In their formulas g is grad_scale * gradient, t the step from 1, and lr the
// learning rate; state starts at zero, and weight decay has been applied. The file of each rule
// begins with its formulas and source.

#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "autograd/parameter.h"
#include "optim/optim_config.h"

namespace difftape {

/// State of a rule in the shape of its parameter, with its name in checkpoints.
struct StateTensor {
  const char* name;
  Tensor value;
};

/// The inputs of one step of one parameter.
struct StepInput {
  Index number;       ///< step from 1
  double lr;          ///< of this parameter
  double grad_scale;  ///< factor on its gradient
};

/// Consecutive elements of one parameter.
struct Elements {
  Index count;
  real keep;                   ///< 1 - weight decay of this step
  const real* grad;            ///< without grad_scale
  const real* direction;       ///< null if the rule needs none
  real* value;                 ///< to be updated
  std::array<real*, 2> state;  ///< in the order of state_names; null beyond
};

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  /// Returns the names of its state tensors, which start at zero.
  virtual std::vector<const char*> state_names() const = 0;

  /// Returns false for parameters that AdamW updates instead.
  virtual bool takes(const Parameter&) const { return true; }
  /// Returns true if the learning rate of a parameter depends on the mean of `measure`.
  virtual bool scales_lr() const { return false; }
  /// Updates the state of the elements of a block (kElementGrain) before `update`, on several
  /// threads. Returns the sum of a measure of them.
  virtual double measure(const StepInput&, const Elements&) const { return 0; }
  /// Returns the factor on the learning rate, and on weight decay that follows it.
  virtual double lr_scale(double /*mean_measure*/) const { return 1; }

  /// Returns true if `direction` needs all elements of a parameter in one process; otherwise,
  /// several processes can update blocks of it.
  virtual bool needs_whole_parameters() const { return false; }
  /// Returns the direction of the step in the shape of the parameter; may update `state`. Called
  /// for one parameter after another.
  virtual Tensor direction(const StepInput&, const Parameter&, std::span<StateTensor>) const {
    return {};
  }

  /// Updates elements, each independently, on several threads.
  virtual void update(const StepInput& step, const Elements& elements) const = 0;
};

std::unique_ptr<UpdateRule> make_adamw(const OptimConfig& config);
std::unique_ptr<UpdateRule> make_stable_adamw(const OptimConfig& config);
std::unique_ptr<UpdateRule> make_lion(const OptimConfig& config);
std::unique_ptr<UpdateRule> make_sgd(const OptimConfig& config);
std::unique_ptr<UpdateRule> make_muon(const OptimConfig& config);

/// The rules of an optimizer.
class RuleSet {
 public:
  explicit RuleSet(const OptimConfig& config);
  /// Returns the rule of config.name, or AdamW if it does not take the parameter.
  const UpdateRule& of(const Parameter& parameter) const;

 private:
  std::unique_ptr<UpdateRule> chosen_, adamw_;
};

/// The factors of one step of Adam's moments, rounded once from double.
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
