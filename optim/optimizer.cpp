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

/// Returns elements of a parameter whose state begins `shift` elements later in its tensors.
Elements elements_of(Optimizer::State& state, const ParameterStep& step, Index begin, Index count,
                     Index shift) {
  Parameter& p = *state.parameter;
  Elements elements{count,
                    step.keep,
                    p.grad.data() + begin,
                    step.direction.allocated() ? step.direction.data() + begin : nullptr,
                    p.value.data() + begin,
                    {}};
  for (size_t i = 0; i < state.tensors.size(); ++i) {
    elements.state[i] = state.tensors[i].value.data() + (begin + shift);
  }
  return elements;
}

/// Calls f(i, block, shift) in parallel for the blocks that this process owns.
template <class F>
void for_each_own_block(const Shards& shards, std::span<const GradientBlock> blocks, F&& f) {
  parallel_for(std::ssize(blocks), [&](Index i) {
    const GradientBlock& block = blocks[i];
    if (!shards.here(block.parameter, block.begin)) return;
    const Piece& piece = shards.piece(block.parameter, block.begin);
    f(i, block, piece.offset - piece.begin);
  });
}

/// Returns the factor of each parameter on the learning rate.
std::vector<double> lr_scales(std::span<Optimizer::State> states, const StepInput& input,
                              const Shards& shards, std::span<const GradientBlock> blocks) {
  std::vector<double> scales(states.size(), 1), sums(states.size()), measures(blocks.size());
  if (std::ranges::none_of(states, [](const auto& state) { return state.rule->scales_lr(); }))
    return scales;
  const ParameterStep step{input, 1, {}};
  for_each_own_block(shards, blocks, [&](Index i, const GradientBlock& block, Index shift) {
    Optimizer::State& state = states[block.parameter];
    measures[i] =
        state.rule->measure(input, elements_of(state, step, block.begin, block.count, shift));
  });
  shards.share(measures);
  for (size_t i = 0; i < blocks.size(); ++i) sums[blocks[i].parameter] += measures[i];
  for (size_t i = 0; i < states.size(); ++i) {
    const auto size = static_cast<double>(states[i].parameter->shape.size());
    scales[i] = states[i].rule->lr_scale(sums[i] / size);
  }
  return scales;
}

/// Sums of squares over one block: of the change, and of the values before it.
struct UpdateSums {
  double update = 0, weight = 0;
};

/// Updates and measures a block, in pieces that stay in the cache; cuts do not change the
/// arithmetic.
UpdateSums measured_update(Optimizer::State& state, const ParameterStep& step,
                           const GradientBlock& block, Index shift) {
  constexpr Index kPiece = 1024;
  std::array<real, kPiece> before;
  UpdateSums sums;
  for (Index begin = 0; begin < block.count; begin += kPiece) {
    const Index count = std::min(kPiece, block.count - begin);
    const Elements piece = elements_of(state, step, block.begin + begin, count, shift);
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

std::span<std::byte> bytes_of(Tensor& tensor, Index begin, Index count) {
  return std::as_writable_bytes(tensor.values().subspan(begin, count));
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
    : parameters_(parameters), rules_(config), shards_(parameters, rules_, distributed::count()) {
  if (config.independent_weight_decay) peak_lr_ = config.lr;
  for (Parameter& p : parameters) {
    const UpdateRule& rule = rules_.of(p);
    State state{&p, &rule, decays(p.role, config) ? config.weight_decay : 0.0, {}};
    const Index owned = shards_.owned(p.position, distributed::rank());
    const Shape shape = owned == p.shape.size() ? p.shape : Shape{owned};
    for (const char* name : rule.state_names())
      state.tensors.push_back({name, owned > 0 ? Tensor::zeros(shape) : Tensor()});
    states_.push_back(std::move(state));
  }
}

void Optimizer::step(double lr, double grad_scale, UpdateNorms* norms) {
  const std::vector<GradientBlock> blocks = gradient_blocks(parameters_);
  const StepInput input{++steps_, lr, grad_scale};
  const std::vector<double> scales = lr_scales(states_, input, shards_, blocks);
  std::vector<ParameterStep> steps(states_.size());
  for (size_t i = 0; i < states_.size(); ++i) {
    if (shards_.owned(i, distributed::rank()) == 0) continue;
    State& state = states_[i];
    Tensor direction = state.rule->direction(input, *state.parameter, state.tensors);
    const double own_lr = lr * scales[i], rate = peak_lr_ ? lr / *peak_lr_ : own_lr;
    const auto keep = static_cast<real>(1 - rate * state.weight_decay);
    steps[i] = {{steps_, own_lr, grad_scale}, keep, std::move(direction)};
  }
  std::vector<UpdateSums> sums(norms ? blocks.size() : 0);
  for_each_own_block(shards_, blocks, [&](Index i, const GradientBlock& block, Index shift) {
    State& state = states_[block.parameter];
    const ParameterStep& step = steps[block.parameter];
    if (norms) {
      sums[i] = measured_update(state, step, block, shift);
    } else {
      state.rule->update(step.input, elements_of(state, step, block.begin, block.count, shift));
    }
  });
  shards_.share(sums);
  if (norms) *norms = norms_of(blocks, sums, parameters_.size());
  shards_.publish_values(parameters_);
}

template <class F>
void Optimizer::for_each_tensor(F&& f) {
  for (State& state : states_) {
    for (StateTensor& tensor : state.tensors) f(tensor.value, *state.parameter);
  }
}

void Optimizer::gather() {
  const Index rank = distributed::rank();
  for_each_tensor([&](Tensor& tensor, const Parameter& p) {
    Tensor own = tensor;
    if (rank == 0 && shards_.owned(p.position, 0) < p.shape.size()) tensor = Tensor::empty(p.shape);
    for (const Piece& piece : shards_.pieces(p.position)) {
      const auto tag = static_cast<Index>(p.position);
      if (rank == 0 && piece.owner > 0) {
        distributed::receive(bytes_of(tensor, piece.begin, piece.count), piece.owner, tag);
      } else if (piece.owner > 0 && piece.owner == rank) {
        distributed::send(bytes_of(own, piece.offset, piece.count), 0, tag);
      } else if (rank == 0 && own.data() != tensor.data()) {
        tensor.slice(piece.begin, piece.count).copy_from(own.slice(piece.offset, piece.count));
      }
    }
  });
  distributed::wait();
}

void Optimizer::release() {
  if (distributed::rank() > 0 || distributed::count() == 1) return;
  for_each_tensor([&](Tensor& tensor, const Parameter& p) {
    const Index owned = shards_.owned(p.position, 0);
    if (owned == p.shape.size()) return;
    Tensor own = owned > 0 ? Tensor::empty({owned}) : Tensor();
    for (const Piece& piece : shards_.pieces(p.position)) {
      if (piece.owner == 0)
        own.slice(piece.offset, piece.count).copy_from(tensor.slice(piece.begin, piece.count));
    }
    tensor = own;
  });
  pool::trim();  // no step needs the memory
}

void Optimizer::scatter() {
  const Index rank = distributed::rank();
  std::vector<Index> steps{rank == 0 ? steps_ : 0};
  shards_.share(steps);
  steps_ = steps[0];
  for_each_tensor([&](Tensor& tensor, const Parameter& p) {
    const auto tag = static_cast<Index>(p.position);
    for (const Piece& piece : shards_.pieces(p.position)) {
      if (piece.owner == 0) continue;
      if (rank == 0)
        distributed::send(bytes_of(tensor, piece.begin, piece.count), piece.owner, tag);
      if (rank == piece.owner)
        distributed::receive(bytes_of(tensor, piece.offset, piece.count), 0, tag);
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
