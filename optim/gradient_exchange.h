#pragma once
// Sends gradients of data-parallel processes to the owners of their pieces (optim/shards.h) while
// backward runs.

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

  /// Sends the complete sums of a parameter to its owners; they must not change until finish().
  void send(size_t parameter);
  /// Waits for all gradients and adds them in the order of the tree. Afterwards each owner holds
  /// the reduced gradient of its pieces; all other elements are unspecified.
  void finish();

 private:
  /// The sums of other processes for a piece of this process.
  struct Received {
    Piece piece;
    std::vector<TreeSum::Part> parts;
  };
  /// Returns the sum of all leaves.
  Tensor sum_of(Received& received);

  ParameterSet& parameters_;
  const Shards& shards_;
  std::vector<TreeSum>& sums_;
  std::vector<std::vector<Received>> received_;  // by parameter
};

}  // namespace difftape
