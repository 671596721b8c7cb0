#pragma once
// Trained tensors, with name, initialization, value and gradient.

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/names.h"
#include "core/tensor.h"

namespace difftape {

/// The role of a parameter, which decides weight decay and update rule. `output` is the projection
/// to the vocabulary; `other` are V1's lambda vectors and sinks. `state` has no gradient:
/// optimizers leave it alone, and a rule of its own changes it (layers/load_balancer.h).
enum class Role { projection, output, embedding, norm_weight, other, state };

/// The component under which tables of a model count a parameter.
enum class Component { embedding, attention, mlp, norms, head };
constexpr auto names_of(Component) {
  return std::to_array<Named<Component>>({{"embedding", Component::embedding},
                                          {"attention", Component::attention},
                                          {"mlp", Component::mlp},
                                          {"norms", Component::norms},
                                          {"head", Component::head}});
}

/// The location of a parameter in its model.
struct ModelPart {
  Component component = Component::head;
  Index layer = -1;  ///< from 0; -1: outside the blocks
  /// Below the component: "q_proj", "up_proj", "input_layernorm"; "lambda" for all parameters of
  /// lambda.
  std::string name{};
};

/// The initial distribution. `normal` draws N(0, std^2) from the stream named like the parameter.
struct Init {
  enum class Kind { normal, constant } kind = Kind::normal;
  double value = 0;  ///< the standard deviation, or the constant
  static Init normal(double std) { return {Kind::normal, std}; }
  static Init constant(double value) { return {Kind::constant, value}; }
};

struct Parameter {
  std::string name;
  Shape shape;
  Role role = Role::projection;
  Init init;
  ModelPart part{};
  size_t position = 0;  ///< in its ParameterSet
  Tensor value{};
  Tensor grad{};              ///< same shape; valid if has_gradient
  bool has_gradient = false;  ///< false: backward overwrites grad

  /// Marks the gradient as absent and keeps its memory.
  void zero_grad() { has_gradient = false; }
};

/// The parameters of a model in order of declaration, at stable addresses. Declaring takes no
/// memory, so models of any size can be counted; `initialize` allocates and fills.
class ParameterSet {
 public:
  ParameterSet() = default;
  ParameterSet(ParameterSet&&) = default;
  ParameterSet& operator=(ParameterSet&&) = default;

  /// Throws std::logic_error if the name is taken.
  Parameter& declare(std::string name, Shape shape, Role role, Init init, ModelPart part = {});

  /// Allocates values and gradients and draws initial values, which depend on (seed, name, shape,
  /// init) alone.
  void initialize(std::uint64_t seed);

  Parameter* find(std::string_view name);
  Parameter& operator[](size_t position) { return parameters_[position]; }
  const Parameter& operator[](size_t position) const { return parameters_[position]; }
  /// Returns the number of elements of all parameters.
  Index count() const;

  auto begin() { return parameters_.begin(); }
  auto end() { return parameters_.end(); }
  auto begin() const { return parameters_.begin(); }
  auto end() const { return parameters_.end(); }
  size_t size() const { return parameters_.size(); }

 private:
  std::deque<Parameter> parameters_;
  std::unordered_map<std::string_view, Parameter*> by_name_;  ///< a model may have 100,000
};

/// A module of a model, under whose name parameters are declared.
struct Module {
  ParameterSet& parameters;
  std::string name;  ///< "model.layers.0.self_attn"
  ModelPart part{};

  /// Returns the module `<name>.<child>`; a first-level child names the part.
  Module operator/(std::string_view child) const;
  /// Declares `<name>.<suffix>`, which is its own part unless the module is one.
  Parameter& declare(std::string_view suffix, Shape shape, Role role, Init init) const;
};

}  // namespace difftape
