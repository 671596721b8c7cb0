#pragma once
// The optimizer: an update rule per parameter (optim.name), weight decay, and the state of the
// rules.

#include <optional>
#include <span>
#include <vector>

#include "autograd/parameter.h"
#include "optim/optim_config.h"
#include "optim/rules/rules.h"
#include "optim/shards.h"

namespace difftape {

/// L2 norms of one step, in order of parameters. Taken in double over fixed blocks, so they do not
/// depend on threads.
struct UpdateNorms {
  std::vector<double> update;  ///< of the change of each parameter
  std::vector<double> weight;  ///< of each parameter before it
};

class Optimizer {
 public:
  /// The state of one parameter.
  struct State {
    Parameter* parameter;
    const UpdateRule* rule;
    double weight_decay;  ///< 0 if the parameter does not decay
    /// The elements that this process owns, in order; all if it owns the whole parameter. Between
    /// gather() and release(), process 0 has all elements of every parameter.
    std::vector<StateTensor> tensors;
  };

  /// Uses the rule of config.name, or AdamW for parameters it does not take. Weight decay applies
  /// to projections and the output, to embeddings if `decay_embeddings`, never to norm weights,
  /// lambda vectors and sinks. `parameters` must be initialized and outlive the optimizer.
  /// Processes share the elements.
  Optimizer(ParameterSet& parameters, const OptimConfig& config);

  /// Updates each parameter p by its rule (optim/rules) with grad_scale * gradient. Weight decay
  /// comes first: p -= lr weight_decay p (PyTorch), or, if independent of the peak learning rate, p
  /// -= (lr / config.lr) weight_decay p (Loshchilov and Hutter 2019, algorithm 2; Wortsman et al.
  /// 2023, arXiv 2309.14322, section 3.2.2). Throws std::logic_error if a gradient is missing.
  /// Fills `norms` if given, with the same bits of the step. All processes must call it; each
  /// updates its own elements and receives all values.
  void step(double lr, double grad_scale = 1, UpdateNorms* norms = nullptr);

  /// Steps taken; with the states, all that a checkpoint needs.
  Index steps() const { return steps_; }
  void set_steps(Index steps) { steps_ = steps; }
  /// In order of parameters.
  std::span<State> states() { return states_; }
  std::span<const State> states() const { return states_; }
  /// Returns the number of state elements in this process.
  Index state_size() const;
  const Shards& shards() const { return shards_; }

  // Every process must call these at the same time.

  /// Collects all state in process 0, until `release`.
  void gather();
  void release();
  /// Distributes the steps and state of process 0 to their owners, and releases the rest.
  void scatter();

 private:
  /// Calls f(tensor, parameter) for every state tensor.
  template <class F>
  void for_each_tensor(F&& f);

  ParameterSet& parameters_;
  RuleSet rules_;
  Shards shards_;
  std::optional<double> peak_lr_;  // set if weight decay is independent of it
  std::vector<State> states_;
  Index steps_ = 0;
};

}  // namespace difftape
