#pragma once
// Processes that train one run together (core/distributed.h): how they share its work, and what
// must be the same in all of them.

#include "train/run/config/config.h"
#include "train/run/loop/train_state.h"
#include "train/system/exit.h"

namespace difftape::run {

/// Throws ConfigError, with what to write, if so many processes cannot share the micro-batches of a
/// step so that the sum of the gradients stays the same.
void require_shares(const Config& config, Index processes);

/// Process 0 throws if another one runs another program or has another processor (UsageError),
/// another configuration (ConfigError) or other data (DataError); the others then wait for the end
/// that follows.
void require_same(const TrainState& state);

/// The largest of what the processes received: all stop after the same step.
system::Exit received_by_any(system::Exit received);

/// While one lives that is wanted, process 0 has all that the optimizer keeps.
class WholeOptimizer {
 public:
  WholeOptimizer(Optimizer& optimizer, bool wanted) : optimizer_(wanted ? &optimizer : nullptr) {
    if (optimizer_) optimizer_->gather();
  }
  ~WholeOptimizer() {
    if (optimizer_) optimizer_->release();
  }
  WholeOptimizer(const WholeOptimizer&) = delete;
  WholeOptimizer& operator=(const WholeOptimizer&) = delete;

 private:
  Optimizer* optimizer_;
};

}  // namespace difftape::run
