#include "optim/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/parallel.h"
#include "optim/grad_norm.h"
#include "optim/rules/rules.h"

namespace difftape {

namespace {

bool decays(Role role, const OptimConfig& config) {
  return role == Role::projection || role == Role::output ||
         (role == Role::embedding && config.decay_embeddings);
}

/// What one step of one parameter needs to know.
struct ParameterStep {
  StepInput input;
  real keep;
  Tensor direction;
};

Elements elements_of(Optimizer::State& state, const ParameterStep& step, Index begin, Index count) {
  Parameter& p = *state.parameter;
  Elements elements{count,
                    step.keep,
                    p.grad.data() + begin,
                    step.direction.allocated() ? step.direction.data() + begin : nullptr,
                    p.value.data() + begin,
                    {}};
  for (size_t i = 0; i < state.tensors.size(); ++i) {
    elements.state[i] = state.tensors[i].value.data() + begin;
  }
  return elements;
}

/// Sums of squares over one block: of the change, and of the values before it.
struct UpdateSums {
  double update = 0, weight = 0;
};

/// An update, measured. In pieces that stay in the cache; each element has the same arithmetic
/// however they are cut.
UpdateSums measured_update(Optimizer::State& state, const ParameterStep& step,
                           const GradientBlock& block) {
  constexpr Index kPiece = 1024;
  std::array<real, kPiece> before;
  UpdateSums sums;
  for (Index begin = 0; begin < block.count; begin += kPiece) {
    const Index count = std::min(kPiece, block.count - begin);
    const Elements piece = elements_of(state, step, block.begin + begin, count);
    std::copy_n(piece.value, count, before.data());
    state.rule->update(step.input, piece);
    for (Index i = 0; i < count; ++i) {
      const auto old = static_cast<double>(before[static_cast<size_t>(i)]);
      const double change = static_cast<double>(piece.value[i]) - old;
      sums.update += change * change;
      sums.weight += old * old;
    }
  }
  return sums;
}

UpdateNorms norms_of(std::span<const GradientBlock> blocks, std::span<const UpdateSums> sums,
                     size_t parameters) {
  UpdateNorms norms{std::vector<double>(parameters), std::vector<double>(parameters)};
  for (size_t i = 0; i < blocks.size(); ++i) {
    norms.update[blocks[i].parameter] += sums[i].update;
    norms.weight[blocks[i].parameter] += sums[i].weight;
  }
  for (double& norm : norms.update) norm = std::sqrt(norm);
  for (double& norm : norms.weight) norm = std::sqrt(norm);
  return norms;
}

}  // namespace

Optimizer::Optimizer(ParameterSet& parameters, const OptimConfig& config)
    : parameters_(parameters) {
  if (config.independent_weight_decay) peak_lr_ = config.lr;
  rules_.push_back(make_rule(config.kind, config));
  rules_.push_back(make_rule(OptimizerKind::adamw, config));
  for (Parameter& p : parameters) {
    const UpdateRule& rule = *rules_[rules_[0]->takes(p) ? 0 : 1];
    State state{&p, &rule, decays(p.role, config) ? config.weight_decay : 0.0, {}};
    for (const char* name : rule.state_names()) {
      state.tensors.push_back({name, Tensor::zeros(p.shape)});
    }
    states_.push_back(std::move(state));
  }
}

void Optimizer::step(double lr, double grad_scale, UpdateNorms* norms) {
  const std::vector<GradientBlock> blocks = gradient_blocks(parameters_);
  ++steps_;
  std::vector<ParameterStep> steps;
  for (State& state : states_) {
    StepInput input{steps_, lr, grad_scale};
    UpdateRule::Prepared prepared = state.rule->prepare(input, *state.parameter, state.tensors);
    input.lr = lr * prepared.lr_scale;
    const double rate = peak_lr_ ? lr / *peak_lr_ : input.lr;
    const auto keep = static_cast<real>(1 - rate * state.weight_decay);
    steps.push_back({input, keep, std::move(prepared.direction)});
  }
  std::vector<UpdateSums> sums(norms ? blocks.size() : 0);
  parallel_for(static_cast<Index>(blocks.size()), [&](Index i) {
    const GradientBlock& block = blocks[static_cast<size_t>(i)];
    State& state = states_[block.parameter];
    const ParameterStep& step = steps[block.parameter];
    if (norms) {
      sums[static_cast<size_t>(i)] = measured_update(state, step, block);
    } else {
      state.rule->update(step.input, elements_of(state, step, block.begin, block.count));
    }
  });
  if (norms) *norms = norms_of(blocks, sums, parameters_.size());
}

Index Optimizer::state_size() const {
  Index size = 0;
  for (const State& state : states_) {
    for (const StateTensor& tensor : state.tensors) size += tensor.value.size();
  }
  return size;
}

}  // namespace difftape
