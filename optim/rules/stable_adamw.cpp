// StableAdamW: AdamW with a learning rate that falls per tensor where v underestimates g^2 (the
// update clipping of Adafactor).
//   m   = beta1 m + (1 - beta1) g
//   v   = beta2 v + (1 - beta2) g^2
//   rms = sqrt(mean(g^2 / max(v / (1 - beta2^t), eps^2)))      over the tensor
//   lr  = lr / max(1, rms)                                     of weight decay too
//   p  -= lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
//   keeps   m, v
//   source  Wortsman et al. 2023 (arXiv 2304.13013), algorithm 2, with bias corrections in the
//           betas; Shazeer and Stern 2018 (arXiv 1804.04235), section 5
#include <algorithm>

#include "optim/rules/rules.h"

namespace difftape {

namespace {

class StableAdamW : public UpdateRule {
 public:
  explicit StableAdamW(const OptimConfig& config) : config_(config) {}

  std::vector<const char*> state_names() const override { return {"m", "v"}; }

  bool scales_lr() const override { return true; }

  double measure(const StepInput& step, const Elements& x) const override {
    const AdamFactors f(config_, step);
    const double inverse_bias =
        1 / (1 - std::pow(config_.betas[1], static_cast<double>(step.number)));
    const double smallest = config_.eps * config_.eps;
    const auto [m, v] = x.state;
    double ratios = 0;
    for (Index i = 0; i < x.count; ++i) {
      const real g = f.grad_scale * x.grad[i];
      m[i] = f.beta1 * m[i] + f.rest1 * g;
      v[i] = f.beta2 * v[i] + f.rest2 * g * g;
      const auto of_g = static_cast<double>(g), of_v = static_cast<double>(v[i]);
      ratios += of_g * of_g / std::max(of_v * inverse_bias, smallest);
    }
    return ratios;
  }

  double lr_scale(double mean_ratio) const override {
    return 1 / std::max(1.0, std::sqrt(mean_ratio));
  }

  void update(const StepInput& step, const Elements& x) const override {
    const AdamFactors f(config_, step);
    const auto [m, v] = x.state;
    for (Index i = 0; i < x.count; ++i) {
      x.value[i] = x.keep * x.value[i] -
                   f.step_size * m[i] / (std::sqrt(v[i]) * f.inverse_root_bias + f.eps);
    }
  }

 private:
  OptimConfig config_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_stable_adamw(const OptimConfig& config) {
  return std::make_unique<StableAdamW>(config);
}

}  // namespace difftape
