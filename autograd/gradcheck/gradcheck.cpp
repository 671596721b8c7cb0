#include "autograd/gradcheck/gradcheck.h"

#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "core/error.h"
#include "core/random.h"

namespace difftape {

namespace {

/// A central difference: the derivative is sum_i weights[i] (f(x + (i + 1) h) - f(x - (i + 1) h))
/// / h, with h = `step` (Fornberg 1988).
struct Stencil {
  std::span<const double> weights;
  double step;
};

constexpr std::array<double, 3> kSixPoints{45.0 / 60, -9.0 / 60, 1.0 / 60};
constexpr std::array<double, 5> kTenPoints{5.0 / 6, -5.0 / 21, 5.0 / 84, -5.0 / 504, 1.0 / 1260};

/// The first suits smooth functions. Ten points are for gradients that are small beside the value,
/// whose rounding asks for a large step, and for strong curvature, such as a norm near its pole,
/// which asks for a small one. The last has the smallest reach, for choices of experts that almost
/// tie. DERIVATIONS.md, section 16, has their errors.
constexpr std::array<Stencil, 6> kStencils{Stencil{kSixPoints, 3e-3}, {kTenPoints, 1e-2},
                                           {kTenPoints, 3e-3},        {kTenPoints, 1e-3},
                                           {kTenPoints, 3e-4},        {kSixPoints, 1e-4}};
constexpr double kOfCurvature = 1e-8;  // the first stencil has smaller errors of rounding

/// Returns d<cotangent, value>/dx at one element and restores x.
double numeric_derivative(const Differentiable& f, real& x, const Tensor& cotangent,
                          const Stencil& stencil) {
  const real center = x;
  double total = 0;
  for (size_t i = 0; i < stencil.weights.size(); ++i) {
    const double offset = stencil.step * static_cast<double>(i + 1);
    x = static_cast<real>(static_cast<double>(center) + offset);
    const Tensor above = f.value();
    const double upper = static_cast<double>(x);
    x = static_cast<real>(static_cast<double>(center) - offset);
    const Tensor below = f.value();
    const double span = (upper - static_cast<double>(x)) / (2 * offset);
    double difference = 0;
    for (Index j = 0; j < above.size(); ++j) {
      difference += static_cast<double>(cotangent.data()[j]) *
                    (static_cast<double>(above.data()[j]) - static_cast<double>(below.data()[j]));
    }
    total += stencil.weights[i] * difference / (stencil.step * span);
  }
  x = center;
  return total;
}

double largest(const Tensor& x) { return absolute_error(x, Tensor::zeros(x.shape())); }

/// The difference between an analytic and a numeric gradient.
struct GradientComparison {
  double top;    ///< largest |numeric|
  double error;  ///< largest |analytic - numeric|; if relative, over `top`
  /// The resolution of finite differences here, in the unit of `error`: the largest difference
  /// between numeric gradients of two neighboring stencils, for the best pair. 0 if the first
  /// stencil was enough.
  double spread = 0;
};

Tensor numeric_gradient(const Differentiable& function, size_t variable, const Tensor& cotangent,
                        const Stencil& stencil) {
  Tensor x = function.variables[variable];
  Tensor gradient = Tensor::like(x);
  for (Index i = 0; i < x.size(); ++i) {
    gradient.data()[i] =
        static_cast<real>(numeric_derivative(function, x.data()[i], cotangent, stencil));
  }
  return gradient;
}

/// Uses the first stencil whose error is below `enough`, else the one with the smallest error. No
/// stencil can confirm a wrong gradient to many digits. A single one can fail to confirm a right
/// one: its step is too large for the curvature, or too small for the rounding.
GradientComparison compare(const Differentiable& function, size_t variable, const Tensor& analytic,
                           const Tensor& cotangent, bool relative, double enough) {
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return relative ? relative_error(a, b) : absolute_error(a, b);
  };
  Tensor numeric = numeric_gradient(function, variable, cotangent, kStencils.front());
  GradientComparison best{largest(numeric), distance(analytic, numeric)};
  if (best.error <= enough) return best;
  best.spread = std::numeric_limits<double>::infinity();
  double step = kStencils.front().step;
  const size_t second = best.error > kOfCurvature ? 2 : 1;  // a larger step would not help
  for (size_t i = second; i < kStencils.size() && !(best.error <= enough); ++i) {
    const Tensor next = numeric_gradient(function, variable, cotangent, kStencils[i]);
    const double error = distance(analytic, next);
    // At equal steps, stencils agree on a jump of the function, such as a change of experts.
    const bool other_step = kStencils[i].step != step;
    const double spread = other_step ? std::min(best.spread, distance(next, numeric)) : best.spread;
    if (error < best.error) best = {largest(next), error};
    step = kStencils[i].step;
    best.spread = spread;
    numeric = next;
  }
  return best;
}

}  // namespace

double absolute_error(const Tensor& a, const Tensor& b) {
  require_shape(a.size() == b.size(), "absolute_error", "sizes differ: {} and {}", a.shape().str(),
                b.shape().str());
  double worst = 0;
  for (Index i = 0; i < a.size(); ++i) {
    const double difference =
        std::abs(static_cast<double>(a.data()[i]) - static_cast<double>(b.data()[i]));
    if (std::isnan(difference)) return difference;
    worst = std::max(worst, difference);
  }
  return worst;
}

double relative_error(const Tensor& a, const Tensor& b) {
  const double worst = absolute_error(a, b), top = largest(b);
  return top > 0 ? worst / top : worst;
}

namespace {

/// Numeric gradients must resolve a third of the tolerance. Otherwise the arithmetic of another
/// processor could move the error over the tolerance.
constexpr double kResolution = kGradcheckTolerance / 3;
constexpr double kTrivial = 1e-3;  // ordinary gradients are larger
constexpr double kNearZero = 0.1;  // gradients near zero are smaller
constexpr double kZero = 1e-11;    // rounding error of a zero difference quotient

Tensor random_tensor(const Shape& shape, std::uint64_t seed, const char* name) {
  Tensor tensor = Tensor::empty(shape);
  fill_normal(tensor, RandomStream(seed, name), 1);
  return tensor;
}

void fail(GradcheckResult& result, std::string why) {
  if (!result.passed() && !result.inconclusive) return;
  result.failure = std::move(why);
  result.inconclusive = false;
}

/// Records a failure of a variable that the numeric gradient may have caused.
void mark_unclear(GradcheckResult& result, const std::string& name, std::string why) {
  result.unclear.push_back(name);
  if (!result.passed()) return;
  result.failure = std::move(why);
  result.inconclusive = true;
}

/// Compares one gradient with its expectation.
void check_expected(GradcheckResult& result, const std::string& name, ExpectedGradient expected,
                    const GradientComparison& found) {
  if (expected == ExpectedGradient::zero) {
    const double largest = found.top + found.error;
    if (!(largest <= kZero)) {
      fail(result, fmt::format("{}: {:.1e}, but must be zero", name, largest));
    }
    return;
  }
  const bool relative = expected == ExpectedGradient::gradient;
  const std::string error =
      fmt::format("{}: {} error {:.1e}", name, relative ? "relative" : "absolute", found.error);
  // A spread near the error may explain it; a far smaller one or NaN does not.
  const bool explained = std::isfinite(found.error) && 10 * found.spread > found.error;
  if (!explained && !(found.error <= kGradcheckTolerance)) {
    result.worst_error = found.error;
    fail(result, fmt::format("{} is over the tolerance {:.0e}", error, kGradcheckTolerance));
  } else if (explained && found.error > kResolution) {
    mark_unclear(result, name,
                 fmt::format("{}; differences tell it to {:.1e} only", error, found.spread));
  } else if (relative && !(found.top > kTrivial)) {
    mark_unclear(result, name,
                 fmt::format("{}: trivial, its largest gradient is {:.1e}", name, found.top));
  } else if (!relative && !(found.top <= kNearZero)) {
    mark_unclear(result, name, fmt::format("{}: {:.1e}, but should be near zero", name, found.top));
  } else {
    result.worst_error = std::max(result.worst_error, found.error);
  }
}

bool same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::equal(a[i].values().begin(), a[i].values().end(), b[i].values().begin()))
      return false;
  }
  return true;
}

std::vector<Tensor> clones(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& tensor : tensors) copies.push_back(tensor.clone());
  return copies;
}

/// Returns the gradients of f for a cotangent, added to `before` unless it is empty. Input
/// `constant` needs no gradient and gets zeros.
std::vector<Tensor> op_gradients(const std::vector<Tensor>& inputs, const OpFunction& f,
                                 const Tensor& cotangent, const std::vector<Tensor>& before,
                                 Index constant = -1) {
  Tape tape;
  std::vector<Var> vars;
  for (Index i = 0; i < std::ssize(inputs); ++i) {
    vars.push_back(i == constant ? tape.constant(inputs[i]) : tape.input(inputs[i]));
    if (!before.empty()) vars[i].gradient().add(before[i]);
  }
  const Var y = f(vars);
  if (y.gradient().requires_grad()) tape.backward(y, cotangent);
  std::vector<Tensor> gradients;
  for (const Var& var : vars) {
    gradients.push_back(var.gradient().requires_grad() ? tape.gradient_of(var)
                                                       : Tensor::zeros(var.shape()));
  }
  return gradients;
}

/// Checks the rules beyond the derivative: accumulation, and inputs without gradient.
void check_bookkeeping(GradcheckResult& result, const std::vector<Tensor>& inputs,
                       const OpFunction& f, const Tensor& cotangent) {
  const std::vector<Tensor> plain = op_gradients(inputs, f, cotangent, {});
  std::vector<Tensor> before;
  for (const Tensor& input : inputs) before.push_back(random_tensor(input.shape(), 7, "before"));
  const std::vector<Tensor> given = clones(before);
  const std::vector<Tensor> added = op_gradients(inputs, f, cotangent, before);
  if (!same(before, given)) fail(result, "a pullback wrote to a gradient that others share");
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor expected = plain[i].clone();
    expected.add(before[i]);
    if (!(relative_error(added[i], expected) <= 1e-13)) {
      fail(result, fmt::format("input {}: the pullback does not add to the gradient", i));
    }
    const std::vector<Tensor> others = op_gradients(inputs, f, cotangent, {}, i);
    for (size_t j = 0; j < inputs.size(); ++j) {
      if (j != i && !same({others[j]}, {plain[j]})) {
        fail(result, fmt::format("input {} changes when input {} needs no gradient", j, i));
      }
    }
  }
}

}  // namespace

GradcheckResult gradcheck(const Differentiable& function, const Expectation& expected_of,
                          std::uint64_t seed) {
  GradcheckResult result;
  const std::vector<Tensor> before = clones(function.variables);
  const Tensor cotangent = random_tensor(function.value().shape(), seed, "cotangent");
  const std::vector<Tensor> analytic = function.gradients(cotangent);
  for (size_t i = 0; i < function.variables.size(); ++i) {
    const ExpectedGradient expected =
        expected_of ? expected_of(function.names[i]) : ExpectedGradient::gradient;
    if (expected == ExpectedGradient::unchecked) continue;
    const bool relative = expected == ExpectedGradient::gradient;
    check_expected(result, function.names[i], expected,
                   compare(function, i, analytic[i], cotangent, relative, kResolution));
    result.elements += analytic[i].size();
    if (expected == ExpectedGradient::zero) result.zeros += analytic[i].size();
  }
  if (!same(before, function.variables)) fail(result, "evaluation changed an input");
  return result;
}

GradcheckResult gradcheck(const std::vector<Tensor>& inputs, const OpFunction& f) {
  Differentiable function;
  function.variables = inputs;
  for (size_t i = 0; i < inputs.size(); ++i) function.names.push_back(fmt::format("input {}", i));
  function.value = [&] {
    Tape tape(Tape::Mode::inference);
    std::vector<Var> vars;
    for (const Tensor& input : inputs) vars.push_back(tape.constant(input));
    return f(vars).value().clone();  // a view would follow the perturbation
  };
  function.gradients = [&](const Tensor& cotangent) {
    return op_gradients(inputs, f, cotangent, {});
  };
  GradcheckResult result = gradcheck(function);
  check_bookkeeping(result, inputs, f, random_tensor(function.value().shape(), 2, "cotangent"));
  return result;
}

GradcheckResult gradcheck(ParameterSet& parameters, const std::function<Var(Tape&)>& f,
                          const Expectation& expected) {
  Differentiable function;
  for (Parameter& parameter : parameters) {
    function.names.push_back(parameter.name);
    function.variables.push_back(parameter.value);
  }
  function.value = [&] {
    Tape tape(Tape::Mode::inference);
    return f(tape).value();
  };
  function.gradients = [&](const Tensor& cotangent) {
    for (Parameter& parameter : parameters) parameter.zero_grad();
    Tape tape;
    tape.backward(f(tape), cotangent);
    std::vector<Tensor> gradients;
    for (Parameter& parameter : parameters) gradients.push_back(parameter.grad.clone());
    return gradients;
  };
  return gradcheck(function, expected);
}

}  // namespace difftape
