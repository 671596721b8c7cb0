// Lion: steps of constant size with the sign of a momentum.
//   p -= lr sign(beta1 m + (1 - beta1) g)       sign(0) = 0
//   m  = beta2 m + (1 - beta2) g
//   keeps   m, as "momentum"
//   source  Chen et al. 2023 (arXiv 2302.06675), algorithm 2; with betas 0.9 and 0.99, a learning
//           rate 3 to 10 times below AdamW's, and a weight decay as much above it
#include "optim/rules/rules.h"

namespace difftape {

namespace {

real sign(real x) { return static_cast<real>((x > 0) - (x < 0)); }

class Lion : public UpdateRule {
 public:
  explicit Lion(const OptimConfig& config) : betas_(config.betas) {}

  std::vector<const char*> state_names() const override { return {"momentum"}; }

  void update(const StepInput& step, const Elements& x) const override {
    const auto scale = static_cast<real>(step.grad_scale), lr = static_cast<real>(step.lr);
    const auto beta1 = static_cast<real>(betas_[0]), rest1 = static_cast<real>(1 - betas_[0]);
    const auto beta2 = static_cast<real>(betas_[1]), rest2 = static_cast<real>(1 - betas_[1]);
    real* m = x.state[0];
    for (Index i = 0; i < x.count; ++i) {
      const real g = scale * x.grad[i];
      x.value[i] = x.keep * x.value[i] - lr * sign(beta1 * m[i] + rest1 * g);
      m[i] = beta2 * m[i] + rest2 * g;
    }
  }

 private:
  std::array<double, 2> betas_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_lion(const OptimConfig& config) {
  return std::make_unique<Lion>(config);
}

}  // namespace difftape
