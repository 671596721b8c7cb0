#include "optim/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/parallel.h"
#include "core/pool.h"
#include "optim/grad_norm.h"
#include "optim/rules/rules.h"

namespace difftape {

namespace {

bool decays(Role role, const OptimConfig& config) {
  return role == Role::projection || role == Role::output ||
         (role == Role::embedding && config.decay_embeddings);
}

/// The inputs for one step of one parameter.
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

/// Updates and measures a block, in pieces that stay in the cache; cuts do not change the
/// arithmetic.
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
      const auto old = static_cast<double>(before[i]);
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
    : parameters_(parameters), shards_(parameters, distributed::count()) {
  if (config.independent_weight_decay) peak_lr_ = config.lr;
  rules_.push_back(make_rule(config.name, config));
  rules_.push_back(make_rule(OptimizerKind::adamw, config));
  for (Parameter& p : parameters) {
    const UpdateRule& rule = *rules_[rules_[0]->takes(p) ? 0 : 1];
    State state{&p, &rule, decays(p.role, config) ? config.weight_decay : 0.0, {}};
    for (const char* name : rule.state_names()) {
      const bool here = shards_.here(p.position);
      state.tensors.push_back({name, here ? Tensor::zeros(p.shape) : Tensor()});
    }
    states_.push_back(std::move(state));
  }
}

void Optimizer::step(double lr, double grad_scale, UpdateNorms* norms) {
  const std::vector<GradientBlock> blocks = gradient_blocks(parameters_);
  ++steps_;
  std::vector<ParameterStep> steps(states_.size());
  for (size_t i = 0; i < states_.size(); ++i) {
    if (!shards_.here(i)) continue;
    State& state = states_[i];
    StepInput input{steps_, lr, grad_scale};
    UpdateRule::Prepared prepared = state.rule->prepare(input, *state.parameter, state.tensors);
    input.lr = lr * prepared.lr_scale;
    const double rate = peak_lr_ ? lr / *peak_lr_ : input.lr;
    const auto keep = static_cast<real>(1 - rate * state.weight_decay);
    steps[i] = {input, keep, std::move(prepared.direction)};
  }
  std::vector<UpdateSums> sums(norms ? blocks.size() : 0);
  parallel_for(std::ssize(blocks), [&](Index i) {
    const GradientBlock& block = blocks[i];
    if (!shards_.here(block.parameter)) return;
    State& state = states_[block.parameter];
    const ParameterStep& step = steps[block.parameter];
    if (norms) {
      sums[i] = measured_update(state, step, block);
    } else {
      state.rule->update(step.input, elements_of(state, step, block.begin, block.count));
    }
  });
  shards_.share(sums);
  if (norms) *norms = norms_of(blocks, sums, parameters_.size());
  shards_.publish_values(parameters_);
}

template <class F>
void Optimizer::for_each_tensor(F&& f) {
  Index tag = 0;
  for (size_t i = 0; i < states_.size(); ++i) {
    for (StateTensor& tensor : states_[i].tensors) {
      f(tensor.value, states_[i].parameter->shape, shards_.owner(i), tag++);
    }
  }
}

void Optimizer::gather() {
  for_each_tensor([](Tensor& tensor, const Shape& shape, Index owner, Index tag) {
    if (owner == 0) return;
    if (distributed::rank() == owner) distributed::send(std::as_bytes(tensor.values()), 0, tag);
    if (distributed::rank() > 0) return;
    tensor = Tensor::empty(shape);
    distributed::receive(std::as_writable_bytes(tensor.values()), owner, tag);
  });
  distributed::wait();
}

void Optimizer::release() {
  for_each_tensor([](Tensor& tensor, const Shape&, Index owner, Index) {
    if (owner != distributed::rank()) tensor = Tensor();
  });
  if (distributed::rank() == 0 && distributed::count() > 1) pool::trim();  // no step needs it
}

void Optimizer::scatter() {
  std::vector<Index> steps{distributed::rank() == 0 ? steps_ : 0};
  shards_.share(steps);
  steps_ = steps[0];
  for_each_tensor([](Tensor& tensor, const Shape&, Index owner, Index tag) {
    if (owner == 0) return;
    if (distributed::rank() == 0) distributed::send(std::as_bytes(tensor.values()), owner, tag);
    if (distributed::rank() == owner) {
      distributed::receive(std::as_writable_bytes(tensor.values()), 0, tag);
    }
  });
  distributed::wait();
  release();
}

Index Optimizer::state_size() const {
  Index size = 0;
  for (const State& state : states_) {
    for (const StateTensor& tensor : state.tensors) size += tensor.value.size();
  }
  return size;
}

}  // namespace difftape
