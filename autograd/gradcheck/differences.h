#pragma once
// Finite differences: the numeric gradient that an analytic one is compared with, and how far it
// can be trusted itself.

#include <functional>
#include <string>
#include <vector>

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

}  // namespace difftape
