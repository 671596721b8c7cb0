#pragma once
// Gradients against finite differences. Meant for the f64 build.

#include <functional>
#include <string>
#include <vector>

#include "autograd/tape.h"

namespace difftape {

/// The accepted error, relative to the largest gradient of the tensor.
inline constexpr double kGradcheckGate = 1e-10;

struct GradcheckResult {
  Index elements = 0;            ///< numbers that were perturbed
  double worst_error = 0;        ///< largest |analytic - numeric| / largest |numeric| of a tensor
  double smallest_gradient = 0;  ///< largest |numeric| of the tensor with the smallest gradients
  std::string failure;           ///< the first broken rule in words, empty if all held
  bool passed() const { return failure.empty(); }
};

/// A differentiable function of the given tensors: `value` evaluates at their present contents,
/// `gradients` returns the gradient of <cotangent, value> for each of them.
struct Differentiable {
  std::vector<std::string> names;
  std::vector<Tensor> variables;
  std::function<Tensor()> value;
  std::function<std::vector<Tensor>(const Tensor& cotangent)> gradients;
};

/// Perturbs every element of every variable by a six-point central stencil (error of order h^6)
/// and compares with the analytic gradient for a random cotangent. Also fails if a gradient is
/// vacuous (largest magnitude below 1e-3) or if evaluation changed a variable.
GradcheckResult gradcheck(const Differentiable& function, std::uint64_t seed = 1);

/// A function of Vars, as ops are tested.
using OpFunction = std::function<Var(std::vector<Var>&)>;

/// Checks f at the given inputs, and besides: gradients add to what is already there, and stay the
/// same for the other inputs when one input needs none.
GradcheckResult gradcheck(const std::vector<Tensor>& inputs, const OpFunction& f);

/// Checks the gradient of every parameter of `parameters` in the function `f` of a tape.
GradcheckResult gradcheck(ParameterSet& parameters, const std::function<Var(Tape&)>& f);

/// Largest |a - b| over the largest |b|; |a| if b is zero. Sizes must agree. NaN if either has one.
double relative_error(const Tensor& a, const Tensor& b);

}  // namespace difftape
