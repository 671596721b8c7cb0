#pragma once
// What changes parameters by their gradients: a rule for each of them (optim.name), weight decay,
// and what the rules keep from step to step.

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "autograd/parameter.h"
#include "optim/optim_config.h"
#include "optim/rules/rules.h"
#include "optim/shards.h"

namespace difftape {

/// L2 norms of what one step did, in the order of the parameters; taken in double over fixed
/// blocks, the same for every number of threads.
struct UpdateNorms {
  std::vector<double> update;  ///< of the change of each parameter
  std::vector<double> weight;  ///< of each parameter before it
};

class Optimizer {
 public:
  /// What is kept of one parameter.
  struct State {
    Parameter* parameter;
    const UpdateRule* rule;
    double weight_decay;               ///< 0 for a parameter that does not decay
    std::vector<StateTensor> tensors;  ///< without memory where another process keeps them
  };

  /// By the rule of config.name; parameters it is not made for have AdamW's. Weight decay applies
  /// to projections and the output, to embeddings if `decay_embeddings`, never to norm weights,
  /// lambda vectors and sinks. `parameters` is initialised and outlives this. Processes that train
  /// together share the parameters.
  Optimizer(ParameterSet& parameters, const OptimConfig& config);

  /// One step of each parameter p by its rule (optim/rules), with grad_scale * gradient; weight
  /// decay comes first: p -= lr weight_decay p (PyTorch's), or, if it is independent of the peak
  /// learning rate, p -= (lr / config.lr) weight_decay p (Loshchilov and Hutter 2019, algorithm 2;
  /// Wortsman et al. 2023, arXiv 2309.14322, section 3.2.2). The gradients stay as they are. Every
  /// parameter must have one (std::logic_error). Also fills `norms` if there are any; the bits of
  /// the step are the same. Each process updates what it answers for; all must call it, and have
  /// all values afterwards.
  void step(double lr, double grad_scale = 1, UpdateNorms* norms = nullptr);

  /// Steps taken. With the states, all that is to be saved and set to continue.
  Index steps() const { return steps_; }
  void set_steps(Index steps) { steps_ = steps; }
  /// In the order of the parameters.
  std::span<State> states() { return states_; }
  std::span<const State> states() const { return states_; }
  /// Elements of all that is kept here.
  Index state_size() const;
  const Shards& shards() const { return shards_; }

  // Every process must call these at the same time.

  /// Process 0 has what all keep, until `release`.
  void gather();
  void release();
  /// The steps taken and what is kept become what process 0 has, which released the rest.
  void scatter();

 private:
  /// Calls f(tensor, shape, owner, number) for all that is kept.
  template <class F>
  void for_each_tensor(F&& f);

  ParameterSet& parameters_;
  Shards shards_;
  std::optional<double> peak_lr_;  // if weight decay is independent of it
  std::vector<std::unique_ptr<UpdateRule>> rules_;
  std::vector<State> states_;
  Index steps_ = 0;
};

}  // namespace difftape
