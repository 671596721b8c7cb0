#pragma once
// The gradients of processes that train together on their way to those that answer for them
// (optim/shards.h), while the rest is still computed.

#include <vector>

#include "optim/shards.h"

namespace difftape {

class GradientExchange {
 public:
  /// Makes room for what other processes send: their gradients of the parameters of this one. Every
  /// process makes one for the same step; of one process it does nothing.
  GradientExchange(ParameterSet& parameters, const Shards& shards);

  /// Sends a gradient, which is complete here and stays as it is, to the owner of its parameter.
  void send(size_t parameter);
  /// After all were sent: waits, and adds up in the order of a tree over the processes
  /// (optim/tree_sum.h). Owners then have the sums, the others what is of no use any more.
  void finish();

 private:
  ParameterSet& parameters_;
  const Shards& shards_;
  std::vector<std::vector<Tensor>> received_;  // of each parameter of this process, by sender
};

}  // namespace difftape
