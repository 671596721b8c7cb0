#include "optim/adamw.h"

#include <cmath>

#include "core/parallel.h"
#include "optim/blocks.h"

namespace difftape {

namespace {

bool decays(Role role, const OptimConfig& config) {
  return role == Role::projection || (role == Role::embedding && config.decay_embeddings);
}

/// The factors of one step, rounded once from double.
struct Factors {
  real grad_scale, beta1, beta2, rest1, rest2;
  real step_size;          // lr / (1 - beta1^t)
  real inverse_root_bias;  // 1 / sqrt(1 - beta2^t)
  real eps;
};

void update(const Factors& f, real keep, const real* grad, Index n, real* p, real* m, real* v) {
  for (Index i = 0; i < n; ++i) {
    const real g = f.grad_scale * grad[i];
    m[i] = f.beta1 * m[i] + f.rest1 * g;
    v[i] = f.beta2 * v[i] + f.rest2 * g * g;
    p[i] = keep * p[i] - f.step_size * m[i] / (std::sqrt(v[i]) * f.inverse_root_bias + f.eps);
  }
}

}  // namespace

AdamW::AdamW(ParameterSet& parameters, const OptimConfig& config)
    : parameters_(parameters), beta1_(config.betas[0]), beta2_(config.betas[1]), eps_(config.eps) {
  for (Parameter& p : parameters) {
    moments_.push_back({&p, Tensor::zeros(p.shape), Tensor::zeros(p.shape),
                        decays(p.role, config) ? config.weight_decay : 0.0});
  }
}

void AdamW::step(double lr, double grad_scale) {
  const std::vector<GradientBlock> blocks = gradient_blocks(parameters_);
  const double t = static_cast<double>(++steps_);
  const auto rounded = [](double x) { return static_cast<real>(x); };
  const Factors factors{rounded(grad_scale),
                        rounded(beta1_),
                        rounded(beta2_),
                        rounded(1 - beta1_),
                        rounded(1 - beta2_),
                        rounded(lr / (1 - std::pow(beta1_, t))),
                        rounded(1 / std::sqrt(1 - std::pow(beta2_, t))),
                        rounded(eps_)};
  parallel_for(static_cast<Index>(blocks.size()), [&](Index i) {
    const GradientBlock& block = blocks[static_cast<size_t>(i)];
    Moments& state = moments_[block.parameter];
    update(factors, rounded(1 - lr * state.weight_decay),
           state.parameter->grad.data() + block.begin, block.count,
           state.parameter->value.data() + block.begin, state.m.data() + block.begin,
           state.v.data() + block.begin);
  });
}

}  // namespace difftape
