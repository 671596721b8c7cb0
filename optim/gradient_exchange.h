#pragma once
// Sends gradients of data-parallel processes to the owners of their parameters (optim/shards.h)
// while backward runs.

#include <vector>

#include "optim/shards.h"
#include "optim/tree_sum.h"

namespace difftape {

class GradientExchange {
 public:
  /// Posts receives for the gradients that this process owns. Every process makes one per step.
  /// `sums` holds, by parameter, the gradients of leaves_of() each process; a step has `leaves`.
  GradientExchange(ParameterSet& parameters, const Shards& shards, std::vector<TreeSum>& sums,
                   Index leaves);

  /// Sends the complete sums of a parameter to its owner; they must not change until finish().
  void send(size_t parameter);
  /// Waits for all gradients and adds them in the order of the tree. Afterwards each owner holds
  /// the reduced gradient; all other buffers are unspecified.
  void finish();

 private:
  ParameterSet& parameters_;
  const Shards& shards_;
  std::vector<TreeSum>& sums_;
  std::vector<std::vector<TreeSum::Part>> received_;  // by owned parameter, in the order of leaves
};

}  // namespace difftape
