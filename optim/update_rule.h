#pragma once
// How a parameter changes in a step: all that optimizers differ in. The rules are in optim/rules.

#include <array>
#include <span>
#include <vector>

#include "autograd/parameter.h"

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

}  // namespace difftape
