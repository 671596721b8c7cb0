#pragma once
// A trained tensor: its name, initial distribution, value and gradient.

#include <deque>
#include <string>
#include <string_view>

#include "core/tensor.h"

namespace difftape {

/// What a parameter is, which decides whether weight decay applies to it and how it is updated.
/// `output`: the projection to the vocabulary. `other`: V1's lambda vectors, sinks.
enum class Role { projection, output, embedding, norm_weight, other };

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
  Tensor value;
  Tensor grad;                ///< same shape; valid if has_gradient
  bool has_gradient = false;  ///< false: the next backward pass overwrites grad

  /// Marks the gradient as absent; the memory stays.
  void zero_grad() { has_gradient = false; }
};

/// The parameters of a model in the order of their declaration, at stable addresses. Declaring
/// costs no memory, so that models of any size can be counted; `initialize` allocates and fills.
class ParameterSet {
 public:
  /// Throws std::logic_error if the name is taken.
  Parameter& declare(std::string name, Shape shape, Role role, Init init);

  /// Allocates values and gradients and draws the initial values. A parameter's values depend on
  /// (seed, name, shape, init) alone: equal in every model that declares it equally.
  void initialize(std::uint64_t seed);

  Parameter* find(std::string_view name);
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

}  // namespace difftape
