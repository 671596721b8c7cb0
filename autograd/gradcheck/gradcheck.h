#pragma once
// Checks of analytic gradients against finite differences. Meant for the f64 build.

#include <functional>
#include <string>
#include <vector>

#include "autograd/tape.h"
#include "core/tensor.h"

namespace difftape {

/// A differentiable function of tensors: `value` evaluates at their current contents, `gradients`
/// returns the gradient of <cotangent, value> for each of them.
struct Differentiable {
  std::vector<std::string> names;
  std::vector<Tensor> variables;
  std::function<Tensor()> value;
  std::function<std::vector<Tensor>(const Tensor& cotangent)> gradients;
};

/// Returns the largest |a - b|, NaN if any element is. Sizes must agree.
double absolute_error(const Tensor& a, const Tensor& b);
/// Returns absolute_error over the largest |b|, or absolute_error if b is zero.
double relative_error(const Tensor& a, const Tensor& b);

/// The accepted error, relative to the largest gradient of the tensor. Finite differences must
/// resolve a third of it (DERIVATIONS.md, section 16).
inline constexpr double kGradcheckTolerance = 1e-10;

/// The expected size of a gradient.
enum class ExpectedGradient {
  gradient,   ///< largest element above 1e-3; errors are relative to it
  zero,       ///< zero by the structure of the function: no element above 1e-11
  near_zero,  ///< below 0.1; errors are absolute
  unchecked   ///< not perturbed: confirmed with other inputs
};
/// Maps the name of a variable to its expectation.
using Expectation = std::function<ExpectedGradient(const std::string& name)>;

struct GradcheckResult {
  Index elements = 0;      ///< perturbed elements
  Index zeros = 0;         ///< elements with an expected gradient of zero
  double worst_error = 0;  ///< largest |analytic - numeric| / largest |numeric| of a tensor
  std::string failure;     ///< the first broken rule, empty if all hold
  /// The failure is a gradient that cannot be measured here: it is too small, or numeric gradients
  /// of different steps disagree. Other inputs may decide.
  bool inconclusive = false;
  std::vector<std::string> unclear{};  ///< the variables that cannot be measured here
  bool passed() const { return failure.empty(); }
};

/// Perturbs every element of every variable and compares with the analytic gradient for a random
/// cotangent. Also fails if a gradient differs from its expectation (by default not trivial) or if
/// evaluation changed a variable.
GradcheckResult gradcheck(const Differentiable& function, const Expectation& expected = {},
                          std::uint64_t seed = 1);

/// An op or composition of ops under test.
using OpFunction = std::function<Var(std::vector<Var>&)>;

/// Also checks that gradients add to previous ones, and stay the same if another input needs none.
GradcheckResult gradcheck(const std::vector<Tensor>& inputs, const OpFunction& f);

/// Checks the gradients of all `parameters` in f.
GradcheckResult gradcheck(ParameterSet& parameters, const std::function<Var(Tape&)>& f,
                          const Expectation& expected = {});

}  // namespace difftape
