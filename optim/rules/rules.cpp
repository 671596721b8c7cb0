#include "optim/rules/rules.h"

#include <stdexcept>

namespace difftape {

namespace {

std::unique_ptr<UpdateRule> make_rule(OptimizerKind kind, const OptimConfig& config) {
  switch (kind) {
    case OptimizerKind::adamw:
      return make_adamw(config);
    case OptimizerKind::muon:
      return make_muon(config);
    case OptimizerKind::stable_adamw:
      return make_stable_adamw(config);
    case OptimizerKind::lion:
      return make_lion(config);
    case OptimizerKind::sgd:
      return make_sgd(config);
  }
  throw std::logic_error("no rule has this kind");
}

}  // namespace

RuleSet::RuleSet(const OptimConfig& config)
    : chosen_(make_rule(config.name, config)), adamw_(make_adamw(config)) {}

const UpdateRule& RuleSet::of(const Parameter& parameter) const {
  return *(chosen_->takes(parameter) ? chosen_ : adamw_);
}

}  // namespace difftape
