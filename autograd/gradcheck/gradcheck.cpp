#include "autograd/gradcheck/gradcheck.h"

#include <array>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/random.h"

namespace difftape {

namespace {

/// The first suits smooth functions and is far from rounding; the others are for functions with
/// strong curvature, such as a norm near its pole.
constexpr std::array<double, 4> kSteps{3e-3, 1e-3, 3e-4, 1e-4};

/// Returns d<cotangent, value>/dx at one element and restores x (Fornberg 1988, order 6).
double numeric_derivative(const Differentiable& f, real& x, const Tensor& cotangent, double step) {
  constexpr std::array<double, 3> kWeights{45.0 / 60, -9.0 / 60, 1.0 / 60};
  const real center = x;
  double total = 0;
  for (size_t i = 0; i < 3; ++i) {
    const double offset = step * static_cast<double>(i + 1);
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
    total += kWeights[i] * difference / (step * span);
  }
  x = center;
  return total;
}

double largest(const Tensor& x) { return absolute_error(x, Tensor::zeros(x.shape())); }

}  // namespace

Tensor numeric_gradient(const Differentiable& function, size_t variable, const Tensor& cotangent,
                        double step) {
  Tensor x = function.variables[variable];
  Tensor gradient = Tensor::like(x);
  for (Index i = 0; i < x.size(); ++i) {
    gradient.data()[i] =
        static_cast<real>(numeric_derivative(function, x.data()[i], cotangent, step));
  }
  return gradient;
}

GradientComparison compare(const Differentiable& function, size_t variable, const Tensor& analytic,
                           const Tensor& cotangent, bool relative, double enough) {
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return relative ? relative_error(a, b) : absolute_error(a, b);
  };
  Tensor numeric = numeric_gradient(function, variable, cotangent, kSteps.front());
  GradientComparison best{largest(numeric), distance(analytic, numeric)};
  if (best.error <= enough) return best;
  best.spread = std::numeric_limits<double>::infinity();
  for (size_t i = 1; i < kSteps.size() && !(best.error <= enough); ++i) {
    const Tensor next = numeric_gradient(function, variable, cotangent, kSteps[i]);
    const double error = distance(analytic, next);
    const double spread = std::min(best.spread, distance(next, numeric));
    if (error < best.error) best = {largest(next), error};
    best.spread = spread;
    numeric = next;
  }
  return best;
}

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

/// Records a failure that the numeric gradient may have caused.
void mark_inconclusive(GradcheckResult& result, std::string why) {
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
  if (!(found.error <= result.worst_error)) result.worst_error = found.error;
  if (!(found.error <= kGradcheckTolerance)) {
    const std::string why =
        fmt::format("{}: {} error {:.1e} is over the tolerance {:.0e}", name,
                    relative ? "relative" : "absolute", found.error, kGradcheckTolerance);
    // A spread near the error may explain it; a far smaller one or NaN does not.
    if (std::isfinite(found.error) && 10 * found.spread > found.error) {
      mark_inconclusive(result,
                        fmt::format("{}; differences tell it to {:.1e} only", why, found.spread));
    } else {
      fail(result, why);
    }
  }
  if (relative && !(found.top > kTrivial)) {
    mark_inconclusive(result,
                      fmt::format("{}: trivial, its largest gradient is {:.1e}", name, found.top));
  }
  if (!relative && !(found.top <= kNearZero)) {
    mark_inconclusive(result, fmt::format("{}: {:.1e}, but should be near zero", name, found.top));
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
    const bool relative = expected == ExpectedGradient::gradient;
    check_expected(result, function.names[i], expected,
                   compare(function, i, analytic[i], cotangent, relative, kGradcheckTolerance / 4));
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
