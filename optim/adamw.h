#pragma once
// AdamW: Adam with decoupled weight decay (Loshchilov and Hutter 2019), as PyTorch defines it.

#include <span>
#include <vector>

#include "autograd/parameter.h"
#include "optim/optim_config.h"

namespace difftape {

/// L2 norms of what one step did, in the order of the parameters; taken in double over fixed
/// blocks, the same for every number of threads.
struct UpdateNorms {
  std::vector<double> update;  ///< of the change of each parameter
  std::vector<double> weight;  ///< of each parameter before it
};

class AdamW {
 public:
  /// Running means of one parameter's gradient and of its square, in its shape.
  struct Moments {
    Parameter* parameter;
    Tensor m, v;
    double weight_decay;  ///< 0 for a parameter that does not decay
  };

  /// Moments start at zero. Weight decay applies to projections, to embeddings if
  /// `decay_embeddings`, never to norm weights, lambda vectors and sinks. `parameters` is
  /// initialised and outlives this.
  AdamW(ParameterSet& parameters, const OptimConfig& config);

  /// With g = grad_scale * gradient and t the number of this step, counted from 1:
  ///   p -= lr weight_decay p
  ///   m  = beta1 m + (1 - beta1) g
  ///   v  = beta2 v + (1 - beta2) g^2
  ///   p -= lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
  /// The gradients stay as they are. Every parameter must have one (std::logic_error). Also fills
  /// `norms` if there are any; the bits of the step are the same.
  void step(double lr, double grad_scale = 1, UpdateNorms* norms = nullptr);

  /// Steps taken. With the moments, all that is to be saved and set to continue.
  Index steps() const { return steps_; }
  void set_steps(Index steps) { steps_ = steps; }
  /// In the order of the parameters.
  std::span<Moments> moments() { return moments_; }
  std::span<const Moments> moments() const { return moments_; }

 private:
  const ParameterSet& parameters_;
  double beta1_, beta2_, eps_;
  Index steps_ = 0;
  std::vector<Moments> moments_;
};

}  // namespace difftape
