#pragma once
// Data-parallel training of one run by several processes (core/distributed.h): requirements on the
// processes, and common decisions.

#include "train/run/config/config.h"
#include "train/run/loop/train_state.h"
#include "train/system/exit.h"

namespace difftape::run {

/// Throws ConfigError, with a valid setting, if there are more processes than leaves in a step
/// (train/run/loop/leaves.h).
void require_shares(const Config& config, Index processes);

/// Compares all processes with process 0. Process 0 throws UsageError for another program or
/// processor, ConfigError for another configuration and DataError for other data; the others wait
/// until it ends them.
void require_same(const TrainState& state);

/// Requests of a process after a step.
struct StepRequests {
  system::Exit stop = system::Exit::ok;  ///< the exit code of a received signal
  bool save = false;                     ///< write a checkpoint
};
/// Returns the requests of any process, with the maximum exit code, so that all processes stop and
/// save after the same step.
StepRequests requests_of_any(const StepRequests& mine);

/// Gathers the optimizer state on process 0 during its lifetime, if `wanted`.
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
