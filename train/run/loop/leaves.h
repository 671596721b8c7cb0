#pragma once
// The leaves of a step: parts of its micro-batches whose gradients are computed one by one and
// summed along a tree (optim/tree_sum.h). They depend on the configuration alone, so processes can
// share them without changing a bit.

#include "train/run/config/config.h"
#include "train/run/data/dataset.h"

namespace difftape::run {

/// Number of leaves that a step of a small model has at least, if it has as many sequences. So many
/// processes can share it.
inline constexpr Index kLeavesPerStep = 8;

/// Models with more parameters than kLargeModel cut a micro-batch only into leaves of at least
/// kLargeModelLeafTokens tokens. Adding the gradients of a leaf moves 12 bytes per parameter; with
/// so many tokens it takes about 1 % of the time of the leaf.
inline constexpr Index kLargeModel = 4'000'000, kLargeModelLeafTokens = 1024;

/// Returns true if the loss is not a mean over tokens, because it has a loss of the routers.
bool needs_whole_micro_batches(const ModelConfig& model);

/// Returns the number of leaves of each micro-batch of a model with so many parameters: the fewest
/// that give kLeavesPerStep, as far as its sequences allow.
Index leaves_per_micro_batch(const Config& config, Index parameters);

/// Sequences of a micro-batch.
struct Leaf {
  Batch batch;
  double weight = 1;  ///< its fraction of the scored targets of the micro-batch
};

/// Returns leaf i of a micro-batch. A leaf without any scored target has weight 0 and scores all
/// of them, so that its forward pass can still be observed.
Leaf leaf_of(const Batch& micro_batch, Index leaves, Index i);

}  // namespace difftape::run
