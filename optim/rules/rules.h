#pragma once
// The update rules. In their formulas g is grad_scale * gradient, t the number of the step, counted
// from 1, and lr the learning rate; what is kept starts at zero, and weight decay came first. Each
// is headed by its formulas and source in its file.

#include <memory>

#include "optim/optim_config.h"
#include "optim/update_rule.h"

namespace difftape {

std::unique_ptr<UpdateRule> make_adamw(const OptimConfig& config);
std::unique_ptr<UpdateRule> make_stable_adamw(const OptimConfig& config);
std::unique_ptr<UpdateRule> make_lion(const OptimConfig& config);
std::unique_ptr<UpdateRule> make_sgd(const OptimConfig& config);
std::unique_ptr<UpdateRule> make_muon(const OptimConfig& config);

/// The rule of a kind, with the numbers of the configuration.
std::unique_ptr<UpdateRule> make_rule(OptimizerKind kind, const OptimConfig& config);

}  // namespace difftape
