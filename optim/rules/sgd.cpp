// Stochastic gradient descent with momentum (heavy ball), as PyTorch's torch.optim.SGD defines it.
//   m  = momentum m + g
//   p -= lr m
//   keeps   m, as "momentum"
//   source  Polyak 1964; Sutskever et al. 2013
#include "optim/rules/rules.h"

namespace difftape {

namespace {

class Sgd : public UpdateRule {
 public:
  explicit Sgd(const OptimConfig& config) : momentum_(config.momentum) {}

  std::vector<const char*> state_names() const override { return {"momentum"}; }

  void update(const StepInput& step, const Elements& x) const override {
    const auto scale = static_cast<real>(step.grad_scale), lr = static_cast<real>(step.lr);
    const auto momentum = static_cast<real>(momentum_);
    real* m = x.state[0];
    for (Index i = 0; i < x.count; ++i) {
      m[i] = momentum * m[i] + scale * x.grad[i];
      x.value[i] = x.keep * x.value[i] - lr * m[i];
    }
  }

 private:
  double momentum_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_sgd(const OptimConfig& config) {
  return std::make_unique<Sgd>(config);
}

}  // namespace difftape
