#pragma once
// A trained tensor: its name, initial distribution, value and gradient.

#include <deque>
#include <string>
#include <string_view>

#include "core/names.h"
#include "core/tensor.h"

namespace difftape {

/// What a parameter is, which decides whether weight decay applies to it and how it is updated.
/// `output`: the projection to the vocabulary. `other`: V1's lambda vectors, sinks.
enum class Role { projection, output, embedding, norm_weight, other };

/// What a parameter is counted under in tables of a model.
enum class Component { embedding, attention, mlp, norms, head };
template <>
inline constexpr auto kNames<Component> =
    std::to_array<Named<Component>>({{"embedding", Component::embedding},
                                     {"attention", Component::attention},
                                     {"mlp", Component::mlp},
                                     {"norms", Component::norms},
                                     {"head", Component::head}});

/// Where a parameter belongs in its model.
struct ModelPart {
  Component component = Component::head;
  Index layer = -1;  ///< from 0; -1: outside the blocks
  /// Below the component: "q_proj", "up_proj", "input_layernorm"; all that makes lambda is
  /// "lambda".
  std::string name{};
};

/// Initial values. `normal` draws N(0, std^2) from the stream named like the parameter.
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
  bool has_gradient = false;  ///< false: the next backward pass overwrites grad

  /// Marks the gradient as absent; the memory stays.
  void zero_grad() { has_gradient = false; }
};

/// The parameters of a model in the order of their declaration, at stable addresses. Declaring
/// costs no memory, so that models of any size can be counted; `initialize` allocates and fills.
class ParameterSet {
 public:
  /// Throws std::logic_error if the name is taken.
  Parameter& declare(std::string name, Shape shape, Role role, Init init, ModelPart part = {});

  /// Allocates values and gradients and draws the initial values. A parameter's values depend on
  /// (seed, name, shape, init) alone: equal in every model that declares it equally.
  void initialize(std::uint64_t seed);

  Parameter* find(std::string_view name);
  Parameter& operator[](size_t position) { return parameters_[position]; }
  const Parameter& operator[](size_t position) const { return parameters_[position]; }
  /// Elements of all parameters.
  Index count() const;

  auto begin() { return parameters_.begin(); }
  auto end() { return parameters_.end(); }
  auto begin() const { return parameters_.begin(); }
  auto end() const { return parameters_.end(); }
  size_t size() const { return parameters_.size(); }

 private:
  std::deque<Parameter> parameters_;
};

/// A part of a model, below whose name parameters are declared.
struct Module {
  ParameterSet& parameters;
  std::string name;  ///< "model.layers.0.self_attn"
  ModelPart part{};

  /// The module `<name>.<child>`; it and all below it is that part of the component.
  Module operator/(std::string_view child) const;
  /// Declares `<name>.<suffix>`, which is a part by itself unless the module is one.
  Parameter& declare(std::string_view suffix, Shape shape, Role role, Init init) const;
};

}  // namespace difftape
