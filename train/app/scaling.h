#pragma once
// Predicts the time and memory of a step of data-parallel processes (docs/cluster.md).

#include <span>

#include "autograd/parameter.h"
#include "train/run/config/config.h"
#include "train/system/text_table.h"

namespace difftape::app {

/// Speed of one process and its link.
struct ClusterSpeed {
  double flops = 0;      ///< of whole steps, per second, as layers/cost counts them
  double bandwidth = 0;  ///< bytes per second, in each direction
  double latency = 0;    ///< seconds until the first byte of a message arrives
};

/// Elements that processes exchange per step: maximum over the processes, in the busier direction.
struct Traffic {
  double gradients = 0;       ///< to the owners
  double last_gradients = 0;  ///< of the embedding alone, whose gradient is complete last
  double weights = 0;         ///< from the owners
  double sent = 0;            ///< of both kinds
  double owned = 0;           ///< elements whose optimizer state a process keeps
  double received = 0;        ///< gradients that wait at their owner until it adds them
};
/// Returns the traffic of optim/gradient_exchange and optim/shards for a step with so many leaves
/// (train/run/loop/leaves.h).
Traffic traffic_of(const ParameterSet& parameters, const OptimConfig& optim, Index leaves,
                   Index processes);

/// Returns the most sets of gradients that a process holds at once: the sums of the aligned ranges
/// of its leaves so far, and the gradients of the next leaf.
Index most_gradients(Index leaves, Index processes);

struct Prediction {
  double compute = 0;   ///< seconds of the process with most leaves
  double exchange = 0;  ///< seconds that the backward pass of its last leaf does not hide
  double seconds() const { return compute + exchange; }
};
/// Predicts a step whose leaves take `leaf_flops` each, two thirds of them backward.
Prediction predict(const Traffic& traffic, Index leaves, Index processes, double leaf_flops,
                   const ClusterSpeed& speed);

/// Takes four steps of at most 8 micro-batches and returns the FLOP/s of the median of the last
/// three.
/// Throws ConfigError if the memory does not suffice.
double measured_flops(const run::Config& config);

/// Returns a table with one row per number of processes, each at most the leaves of a step
/// (run::require_shares).
system::Table scaling_table(const run::Config& config, std::span<const Index> processes,
                            const ClusterSpeed& speed);

}  // namespace difftape::app
