#pragma once
// Gradients against finite differences: the numeric gradient that an analytic one is compared with,
// how far it can be trusted itself, and the rules. Meant for the f64 build.

#include <functional>
#include <string>
#include <vector>

#include "autograd/tape.h"
#include "core/tensor.h"

namespace difftape {

/// A differentiable function of the given tensors: `value` evaluates at their present contents,
/// `gradients` returns the gradient of <cotangent, value> for each of them.
struct Differentiable {
  std::vector<std::string> names;
  std::vector<Tensor> variables;
  std::function<Tensor()> value;
  std::function<std::vector<Tensor>(const Tensor& cotangent)> gradients;
};

/// Gradient of <cotangent, value> by perturbing every element of one variable with a six-point
/// central stencil: the error is of order step^6. The variable is left as it was.
Tensor numeric_gradient(const Differentiable& function, size_t variable, const Tensor& cotangent,
                        double step);

/// An analytic gradient beside the numeric one.
struct GradientComparison {
  double top;    ///< largest |numeric|
  double error;  ///< largest |analytic - numeric|; if relative, over `top`
  /// Largest difference of two numeric gradients whose steps are neighbours, for the best pair, in
  /// the measure of `error`: what differences can tell at all. 0 if one step was enough.
  double spread = 0;
};
/// Takes the first step whose error is below `enough`, or else the step with the smallest error. No
/// step can confirm a wrong gradient to many digits, but one step can lack the digits to confirm a
/// right one: too large where the function bends, too small where rounding counts.
GradientComparison compare(const Differentiable& function, size_t variable, const Tensor& analytic,
                           const Tensor& cotangent, bool relative, double enough);

/// Largest |a - b|. Sizes must agree. NaN if either has one.
double absolute_error(const Tensor& a, const Tensor& b);
/// absolute_error over the largest |b|; |a| if b is zero.
double relative_error(const Tensor& a, const Tensor& b);

/// The accepted error, relative to the largest gradient of the tensor.
inline constexpr double kGradcheckTolerance = 1e-10;

/// What is known of a gradient before it is computed.
enum class ExpectedGradient {
  gradient,  ///< its largest element is above 1e-3; errors are relative to that element
  zero,      ///< zero by the structure of the function: no element may be above 1e-11
  near_zero  ///< below 0.1; errors are absolute
};
/// By the name of the variable.
using Expectation = std::function<ExpectedGradient(const std::string& name)>;

struct GradcheckResult {
  Index elements = 0;      ///< numbers that were perturbed
  Index zeros = 0;         ///< of these, the ones whose gradient was expected to be zero
  double worst_error = 0;  ///< largest |analytic - numeric| / largest |numeric| of a tensor
  std::string failure;     ///< the first broken rule in words, empty if all held
  /// Failed, but only because the gradient cannot be measured here: it is too small, or numeric
  /// gradients of different steps do not agree among themselves. Other inputs may tell.
  bool inconclusive = false;
  bool passed() const { return failure.empty(); }
};

/// Perturbs every element of every variable and compares with the analytic gradient
/// for a random cotangent. Also fails if a gradient is not what `expected` says of it (empty: a
/// gradient everywhere), such as trivial, or if evaluation changed a variable.
GradcheckResult gradcheck(const Differentiable& function, const Expectation& expected = {},
                          std::uint64_t seed = 1);

/// A function of Vars, as ops are tested.
using OpFunction = std::function<Var(std::vector<Var>&)>;

/// Checks f at the given inputs, and besides: gradients add to what is already there, and stay the
/// same for the other inputs when one input needs none.
GradcheckResult gradcheck(const std::vector<Tensor>& inputs, const OpFunction& f);

/// Checks the gradient of every parameter of `parameters` in the function `f` of a tape.
GradcheckResult gradcheck(ParameterSet& parameters, const std::function<Var(Tape&)>& f,
                          const Expectation& expected = {});

}  // namespace difftape
