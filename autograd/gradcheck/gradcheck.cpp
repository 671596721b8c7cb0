#include "autograd/gradcheck/gradcheck.h"

#include <array>
#include <cmath>

#include "core/error.h"
#include "core/random.h"

namespace difftape {

namespace {

constexpr double kVacuous = 1e-3;
constexpr double kStep = 1e-3;

Tensor random_tensor(const Shape& shape, std::uint64_t seed, const char* name) {
  Tensor tensor = Tensor::empty(shape);
  fill_normal(tensor, RandomStream(seed, name), 1);
  return tensor;
}

/// d<cotangent, value>/dx at one element, x is left as it was (Fornberg 1988, order 6).
double numeric_gradient(const Differentiable& f, real& x, const Tensor& cotangent) {
  constexpr std::array<double, 3> kWeights{45.0 / 60, -9.0 / 60, 1.0 / 60};
  const real center = x;
  double total = 0;
  for (size_t i = 0; i < 3; ++i) {
    const double offset = kStep * static_cast<double>(i + 1);
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
    total += kWeights[i] * difference / (kStep * span);
  }
  x = center;
  return total;
}

double largest(const Tensor& x) {
  double top = 0;
  for (real value : x.values()) top = std::max(top, std::abs(static_cast<double>(value)));
  return top;
}

void fail(GradcheckResult& result, std::string why) {
  if (result.failure.empty()) result.failure = std::move(why);
}

void compare(GradcheckResult& result, const std::string& name, const Tensor& analytic,
             const Tensor& numeric) {
  const double top = largest(numeric), error = relative_error(analytic, numeric);
  if (!(error <= result.worst_error)) result.worst_error = error;
  result.smallest_gradient = result.elements == 0 ? top : std::min(result.smallest_gradient, top);
  result.elements += numeric.size();
  if (!(top > kVacuous)) {
    fail(result, fmt::format("{}: vacuous, its largest gradient is {:.1e}", name, top));
  }
  if (!(error <= kGradcheckGate)) {
    fail(result, fmt::format("{}: relative error {:.1e} is over the gate {:.0e}", name, error,
                             kGradcheckGate));
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

/// Gradients of f for a cotangent. `before`, if not empty, is what the gradients hold already;
/// input number `constant` needs no gradient and gets zeros.
std::vector<Tensor> op_gradients(const std::vector<Tensor>& inputs, const OpFunction& f,
                                 const Tensor& cotangent, const std::vector<Tensor>& before,
                                 int constant = -1) {
  Tape tape;
  std::vector<Var> vars;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_constant = static_cast<int>(i) == constant;
    vars.push_back(is_constant ? tape.constant(inputs[i]) : tape.input(inputs[i]));
    if (!before.empty()) vars[i].gradient().add(before[i]);
  }
  const Var y = f(vars);
  if (y.gradient().wanted()) tape.backward(y, cotangent);
  std::vector<Tensor> gradients;
  for (const Var& var : vars) {
    gradients.push_back(var.gradient().wanted() ? tape.gradient_of(var)
                                                : Tensor::zeros(var.shape()));
  }
  return gradients;
}

/// The rules beyond the derivative itself: accumulation, and inputs without gradient.
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
    const std::vector<Tensor> others = op_gradients(inputs, f, cotangent, {}, static_cast<int>(i));
    for (size_t j = 0; j < inputs.size(); ++j) {
      if (j != i && !same({others[j]}, {plain[j]})) {
        fail(result, fmt::format("input {} changes when input {} needs no gradient", j, i));
      }
    }
  }
}

}  // namespace

double relative_error(const Tensor& a, const Tensor& b) {
  require_shape(a.size() == b.size(), "relative_error", "sizes differ: {} and {}", a.shape().str(),
                b.shape().str());
  double worst = 0;
  for (Index i = 0; i < a.size(); ++i) {
    const double difference =
        std::abs(static_cast<double>(a.data()[i]) - static_cast<double>(b.data()[i]));
    if (std::isnan(difference)) return difference;
    worst = std::max(worst, difference);
  }
  const double top = largest(b);
  return top > 0 ? worst / top : worst;
}

GradcheckResult gradcheck(const Differentiable& function, std::uint64_t seed) {
  GradcheckResult result;
  const std::vector<Tensor> before = clones(function.variables);
  const Tensor cotangent = random_tensor(function.value().shape(), seed, "cotangent");
  const std::vector<Tensor> analytic = function.gradients(cotangent);
  if (!same(before, function.variables)) fail(result, "evaluation changed an input");
  for (size_t i = 0; i < function.variables.size(); ++i) {
    Tensor variable = function.variables[i];
    Tensor numeric = Tensor::like(variable);
    for (Index j = 0; j < variable.size(); ++j) {
      numeric.data()[j] =
          static_cast<real>(numeric_gradient(function, variable.data()[j], cotangent));
    }
    compare(result, function.names[i], analytic[i], numeric);
  }
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

GradcheckResult gradcheck(ParameterSet& parameters, const std::function<Var(Tape&)>& f) {
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
  return gradcheck(function);
}

}  // namespace difftape
