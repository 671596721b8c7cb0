#include "autograd/gradcheck/differences.h"

#include <array>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace difftape {

namespace {

/// The first suits a smooth function and is far from rounding; the others are for those that bend
/// sooner, such as a norm near its pole.
constexpr std::array<double, 4> kSteps{3e-3, 1e-3, 3e-4, 1e-4};

/// d<cotangent, value>/dx at one element, x is left as it was (Fornberg 1988, order 6).
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

}  // namespace difftape
