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
  Tape::Node& node = tape_->nodes_[static_cast<size_t>(node_)];
  Tensor& memory = tape_->gradient_memory(node);
  const bool first = node.parameter ? !node.parameter->has_gradient : !node.has_gradient;
  if (first) {
    node.has_gradient = true;
    if (node.parameter) node.parameter->has_gradient = true;
    return {memory, Accumulate::no};
  }
  if (!node.parameter && !memory.unique()) memory = memory.clone();
  return {memory, Accumulate::yes};
}

void Gradient::add(const Tensor& gradient) const {
  if (!requires_grad()) return;
  Tape::Node& node = tape_->nodes_[static_cast<size_t>(node_)];
  require_shape(gradient.size() == node.shape.size(), node.op,
                "a gradient of {} was added for a value of {}", gradient.shape().str(),
                node.shape.str());
  if (!node.parameter && !node.has_gradient) {
    node.grad = gradient.reshaped(node.shape);
    node.has_gradient = true;
    return;
  }
  Buffer here = buffer();
  here.accumulate == Accumulate::no ? here.grad.copy_from(gradient) : here.grad.add(gradient);
}

Tensor& Tape::gradient_memory(Node& node) {
  Tensor& memory = node.parameter ? node.parameter->grad : node.grad;
  if (!memory.allocated()) memory = Tensor::empty(node.shape);
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

Var Tape::record(const char* op, Tensor value, std::initializer_list<Var> inputs,
                 Pullback pullback) {
  profile::since_last(profile::Category::forward, op, NameScope::current());
  if (hook_) hook_(op, NameScope::current(), Phase::forward, value);
  const bool wanted = recording_ && std::any_of(inputs.begin(), inputs.end(), [](const Var& x) {
                        return x.gradient().requires_grad();
                      });
  if (!wanted) return constant(std::move(value));
  Node node{.op = op,
            .scope = std::string(NameScope::current()),
            .shape = value.shape(),
            .pullback = std::move(pullback)};
  if (hook_) {
    for (const Var& x : inputs) {
      if (x.gradient().requires_grad()) node.inputs.push_back(x.node_);
    }
  }
  return {std::move(value), this, add_node(std::move(node))};
}

void Tape::show_gradients(const Node& of) const {
  for (const int input : of.inputs) {
    const Node& node = nodes_[static_cast<size_t>(input)];
    const bool written = node.parameter ? node.parameter->has_gradient : node.has_gradient;
    if (written) {
      hook_(of.op, of.scope, Phase::backward, node.parameter ? node.parameter->grad : node.grad);
    }
  }
}

void Tape::backward(const Var& loss) { backward(loss, Tensor::full(loss.shape(), 1)); }

void Tape::backward(const Var& from, const Tensor& cotangent) {
  require_shape(from.gradient().requires_grad(), "backward",
                "the value does not depend on any leaf");
  from.gradient().add(cotangent);
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    // All that uses a parameter was recorded after it.
    if (hook_ && node->parameter && node->parameter->has_gradient) {
      hook_(node->op, node->scope, Phase::complete, node->parameter->grad);
    }
    if (!node->pullback) continue;
    const profile::Span span(profile::Category::backward, node->op, node->scope);
    const Pullback pullback = std::exchange(node->pullback, nullptr);
    const Tensor dy = std::exchange(node->grad, Tensor());
    if (!node->has_gradient) continue;
    const NameScope scope(node->scope);
    pullback(dy);
    if (hook_) show_gradients(*node);
  }
  for (Node& node : nodes_) {
    if (node.parameter && !node.parameter->has_gradient) {
      gradient_memory(node).fill(0);
      node.parameter->has_gradient = true;
    }
  }
}

Tensor Tape::gradient_of(const Var& leaf) const {
  assert(leaf.node_ >= 0);
  const Node& node = nodes_[static_cast<size_t>(leaf.node_)];
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

Var record(const char* op, Tensor value, std::initializer_list<Var> inputs,
           Tape::Pullback pullback) {
  for (const Var& input : inputs) {
    return input.tape().record(op, std::move(value), inputs, std::move(pullback));
  }
  throw std::logic_error("an op needs at least one input");
}

}  // namespace difftape
