#include "autograd/tape.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "core/error.h"
#include "core/name_scope.h"
#include "core/profile.h"

namespace difftape {

Tensor Gradient::grad() const {
  Buffer here = buffer();
  if (here.accumulate == Accumulate::no) here.grad.fill(0);
  return here.grad;
}

Gradient::Buffer Gradient::buffer() const {
  assert(requires_grad());
  Tape::Node& node = tape_->nodes_[node_];
  Tensor& memory = node.gradient_memory();
  if (!std::exchange(node.has(), true)) return {memory, Accumulate::no};
  if (std::exchange(node.adopted, false) && !memory.unique()) memory = memory.clone();
  return {memory, Accumulate::yes};
}

void Gradient::add(const Tensor& gradient) const {
  if (!requires_grad()) return;
  Tape::Node& node = tape_->nodes_[node_];
  require_shape(gradient.size() == node.shape.size(), node.op,
                "the gradient is {}, its value is {}; need equal sizes", gradient.shape().str(),
                node.shape.str());
  if (!node.parameter && !node.has_gradient) {
    node.grad = gradient.reshaped(node.shape);
    node.has_gradient = node.adopted = true;
    return;
  }
  Buffer here = buffer();
  here.accumulate == Accumulate::no ? here.grad.copy_from(gradient) : here.grad.add(gradient);
}

Tensor& Tape::Node::gradient_memory() {
  Tensor& memory = gradient();
  if (!memory.allocated()) memory = Tensor::empty(shape);
  return memory;
}

int Tape::add_node(Node node) {
  nodes_.push_back(std::move(node));
  return static_cast<int>(nodes_.size()) - 1;
}

Var Tape::input(Tensor value) {
  const int id =
      recording_ ? add_node({.op = "input", .shape = value.shape(), .is_leaf = true}) : -1;
  return {std::move(value), this, id};
}

Var Tape::parameter(Parameter& parameter) {
  if (!recording_) return {parameter.value, this, -1};
  const auto [known, added] = parameter_nodes_.try_emplace(&parameter, -1);
  if (added) {
    known->second = add_node({.op = "parameter",
                              .scope = parameter.name,
                              .shape = parameter.shape,
                              .is_leaf = true,
                              .parameter = &parameter});
  }
  return {parameter.value, this, known->second};
}

Var Tape::record(const char* op, Tensor value, const std::vector<Var>& inputs, Pullback pullback) {
  profile::since_last(profile::Category::forward, op, NameScope::current());
  for (const Var& x : inputs)
    throw_if<UsageError>(x.defined() && &x.tape() != this,
                         "{}: its inputs are on two tapes; need values of one tape", op);
  if (events_.on_value) events_.on_value(op, NameScope::current(), value);
  const bool wanted = recording_ && std::any_of(inputs.begin(), inputs.end(), [](const Var& x) {
                        return x.gradient().requires_grad();
                      });
  if (!wanted) return constant(std::move(value));
  Node node{.op = op,
            .scope = std::string(NameScope::current()),
            .shape = value.shape(),
            .pullback = std::move(pullback)};
  for (const Var& x : inputs) {
    if (events_.on_gradient && x.gradient().requires_grad()) node.inputs.push_back(x.node_);
  }
  return {std::move(value), this, add_node(std::move(node))};
}

SavedTensor Tape::saved(const Tensor& x) {
  if (precision_ == Precision::full) return {x, precision_};
  if (!last_.allocated() || last_.data() != x.data() || last_.shape() != x.shape()) {
    last_saved_ = {x, precision_};
    last_ = x;
  }
  return last_saved_;
}

void Tape::backward(const Var& loss) { backward(loss, Tensor::full(loss.shape(), 1)); }

void Tape::backward(const Var& from, const Tensor& cotangent) {
  require_shape(from.gradient().requires_grad(), "backward",
                "the value does not depend on any leaf; need one computed from a parameter");
  throw_if<UsageError>(std::exchange(has_run_, true),
                       "backward: this tape has run backward before, which freed what its ops had "
                       "saved; add the losses and call backward once, or use a new tape");
  last_ = {};
  last_saved_ = {};
  from.gradient().add(cotangent);
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    // Every use of a parameter was recorded after it.
    if (events_.on_complete && node->parameter && node->has())
      events_.on_complete(*node->parameter);
    if (!node->pullback) continue;
    const profile::Span span(profile::Category::backward, node->op, node->scope);
    const Pullback pullback = std::exchange(node->pullback, nullptr);
    const Tensor dy = std::exchange(node->grad, Tensor());
    if (!node->has_gradient) continue;
    const NameScope scope(node->scope);
    pullback(dy);
    for (const int input : node->inputs) {
      Node& to = nodes_[input];
      if (to.has()) events_.on_gradient(node->op, node->scope, to.gradient());
    }
  }
  for (Node& node : nodes_) {
    if (node.parameter && !std::exchange(node.has(), true)) node.gradient_memory().fill(0);
  }
}

Tensor Tape::gradient_of(const Var& leaf) const {
  assert(leaf.node_ >= 0);
  const Node& node = nodes_[leaf.node_];
  if (node.parameter) return node.parameter->grad;
  return node.has_gradient ? node.grad : Tensor::zeros(node.shape);
}

std::vector<std::string> Tape::ops() const {
  std::vector<std::string> names;
  for (const Node& node : nodes_) {
    if (!node.is_leaf) names.emplace_back(node.op);
  }
  return names;
}

Var record(const char* op, Tensor value, const std::vector<Var>& inputs, Tape::Pullback pullback) {
  const auto first = std::ranges::find_if(inputs, &Var::defined);
  if (first == inputs.end()) throw std::logic_error("an op needs at least one input");
  return first->tape().record(op, std::move(value), inputs, std::move(pullback));
}

}  // namespace difftape
