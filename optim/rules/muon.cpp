// Muon: momentum with singular values near 1, for the projections of the blocks; a matrix of
// several heads counts as one. All other parameters have AdamW.
//   m  = momentum m + (1 - momentum) g
//   d  = momentum m + (1 - momentum) g                     Nesterov's
//   X  = d / max(|d|, 1e-7)                                Frobenius norm
//   5 times: X <- a X + (b A + c A A) X with A = X X^T     a, b, c = 3.4445, -4.7750, 2.0315
//   p -= lr 0.2 sqrt(max(rows, columns)) X
//   keeps   m, as "momentum"
//   source  Jordan et al. 2024, kellerjordan.github.io/posts/muon (with X in bfloat16; here it is
//           `real`). The last factor: Liu et al. 2025 (Moonlight, arXiv 2502.16982), equation 4. It
//           gives updates the RMS of AdamW's, whose learning rate and weight decay then fit
#include <algorithm>
#include <cmath>

#include "core/gemm.h"
#include "core/rows.h"
#include "optim/rules/rules.h"

namespace difftape {

namespace {

constexpr int kIterations = 5;
constexpr real kA{3.4445}, kB{-4.7750}, kC{2.0315};
constexpr double kSmallestNorm = 1e-7;
constexpr double kRms = 0.2;  // RMS of AdamW's updates

void combine(real alpha, const Tensor& x, real beta, Tensor& y) {
  parallel_ranges(x.size(), kElementGrain, [&](Index begin, Index count) {
    Row to(y.data() + begin, count);
    to = alpha * ConstRow(x.data() + begin, count) + beta * to;
  });
}

void scale(double factor, Tensor& x) {
  parallel_ranges(x.size(), kElementGrain, [&](Index begin, Index count) {
    Row(x.data() + begin, count) *= static_cast<real>(factor);
  });
}

double norm_of(const Tensor& x) {
  const double squares = parallel_sum(x.size(), kElementGrain, [&](Index begin, Index count) {
    double sum = 0;
    for (Index i = begin; i < begin + count; ++i) {
      sum += static_cast<double>(x.data()[i]) * static_cast<double>(x.data()[i]);
    }
    return sum;
  });
  return std::sqrt(squares);
}

void multiply(const Operand& a, const Operand& b, Tensor& c) {
  gemm(a, b, c.data(), c.shape().last(), Accumulate::no);
}

/// Maps U S V^T of norm at most 1 to U S' V^T with S' near 1. Uses the smaller of X X^T and X^T X.
Tensor near_orthogonal(Tensor x) {
  const Index rows = x.shape()[0], columns = x.shape()[1], n = std::min(rows, columns);
  const bool wide = rows <= columns;
  Tensor gram = Tensor::empty({n, n}), polynomial = Tensor::like(gram), next = Tensor::like(x);
  for (int i = 0; i < kIterations; ++i) {
    const Operand left = matrix(x), right = transpose(left);
    wide ? multiply(left, right, gram) : multiply(right, left, gram);
    multiply(matrix(gram), matrix(gram), polynomial);
    combine(kB, gram, kC, polynomial);
    wide ? multiply(matrix(polynomial), left, next) : multiply(left, matrix(polynomial), next);
    combine(kA, x, 1, next);
    std::swap(x, next);
  }
  return x;
}

class Muon : public UpdateRule {
 public:
  explicit Muon(const OptimConfig& config) : momentum_(config.momentum) {}

  std::vector<const char*> state_names() const override { return {"momentum"}; }
  bool takes(const Parameter& parameter) const override {
    return parameter.role == Role::projection && parameter.shape.rank() == 2;
  }

  bool needs_whole_parameters() const override { return true; }

  Tensor direction(const StepInput& step, const Parameter& parameter,
                   std::span<StateTensor> state) const override {
    const auto momentum = static_cast<real>(momentum_);
    const auto rest = static_cast<real>((1 - momentum_) * step.grad_scale);
    Tensor& m = state[0].value;
    combine(rest, parameter.grad, momentum, m);
    Tensor d = m.clone();
    combine(rest, parameter.grad, momentum, d);
    scale(1 / std::max(norm_of(d), kSmallestNorm), d);
    Tensor x = near_orthogonal(std::move(d));
    const Index longer = std::max(parameter.shape[0], parameter.shape[1]);
    scale(kRms * std::sqrt(static_cast<double>(longer)), x);
    return x;
  }

  void update(const StepInput& step, const Elements& x) const override {
    Row value(x.value, x.count);
    value = x.keep * value - static_cast<real>(step.lr) * ConstRow(x.direction, x.count);
  }

 private:
  double momentum_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_muon(const OptimConfig& config) {
  return std::make_unique<Muon>(config);
}

}  // namespace difftape
