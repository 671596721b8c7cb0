#pragma once
// Sends gradients of data-parallel processes to the owners of their parameters (optim/shards.h)
// while backward runs.

#include <vector>

#include "optim/shards.h"

namespace difftape {

class GradientExchange {
 public:
  /// Posts receives for the gradients that this process owns. Every process makes one per step;
  /// without other processes it does nothing.
  GradientExchange(ParameterSet& parameters, const Shards& shards);

  /// Sends a complete gradient to its owner; it must not change until finish().
  void send(size_t parameter);
  /// Waits for all gradients and adds them in the order of a tree over processes
  /// (optim/tree_sum.h). Afterwards each owner holds the reduced gradient; all other buffers are
  /// unspecified.
  void finish();

 private:
  ParameterSet& parameters_;
  const Shards& shards_;
  std::vector<std::vector<Tensor>> received_;  // per owned parameter, by sender
};

}  // namespace difftape
