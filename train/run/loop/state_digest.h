#pragma once
// Digests of what a step changes: two runs whose digests are equal have the same bits in every
// parameter and in all that the optimizer keeps.

#include <string>
#include <vector>

#include "train/run/checkpoint/checkpoint.h"
#include "train/run/loop/train_state.h"
#include "train/run/records/digests.h"

namespace difftape::run {

/// The names of the tensors by their datasets in a checkpoint: "model/<parameter>" of each in the
/// order of the model, then "optim/<parameter>/<what is kept of it>".
std::vector<std::string> state_tensors(const TrainState& state);

/// Of the bytes of each tensor in memory, in that order.
StateDigest digest_of(const TrainState& state);

/// The same of a checkpoint of a run like `state`. Throws DataError for one that lacks a tensor.
StateDigest digest_of(const Checkpoint& checkpoint, const TrainState& state);

}  // namespace difftape::run
