// AdamW: Adam with decoupled weight decay, as PyTorch's torch.optim.AdamW defines it.
//   m  = beta1 m + (1 - beta1) g
//   v  = beta2 v + (1 - beta2) g^2
//   p -= lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
//   keeps   m, v
//   source  Loshchilov and Hutter 2019 (arXiv 1711.05101), algorithm 2
#include "optim/rules/rules.h"

namespace difftape {

namespace {

void update_elements(const AdamFactors& f, real keep, const real* grad, Index n, real* p, real* m,
                     real* v) {
  for (Index i = 0; i < n; ++i) {
    const real g = f.grad_scale * grad[i];
    m[i] = f.beta1 * m[i] + f.rest1 * g;
    v[i] = f.beta2 * v[i] + f.rest2 * g * g;
    p[i] = keep * p[i] - f.step_size * m[i] / (std::sqrt(v[i]) * f.inverse_root_bias + f.eps);
  }
}

class AdamW : public UpdateRule {
 public:
  explicit AdamW(const OptimConfig& config) : config_(config) {}

  std::vector<const char*> state_names() const override { return {"m", "v"}; }

  void update(const StepInput& step, const Elements& x) const override {
    update_elements({config_, step}, x.keep, x.grad, x.count, x.value, x.state[0], x.state[1]);
  }

 private:
  OptimConfig config_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_adamw(const OptimConfig& config) {
  return std::make_unique<AdamW>(config);
}

}  // namespace difftape
