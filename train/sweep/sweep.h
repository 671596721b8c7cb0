#pragma once
// Trains every arm of a sweep, then compares them.

#include <iosfwd>

#include "core/error.h"
#include "train/sweep/sweep_config.h"

namespace difftape {

struct SweepRequest {
  std::vector<std::string> command;  ///< recorded in each env.json
  std::ostream* console;
  int console_descriptor = -1;
};

/// Trains the arms one after another, each in its run directory, then prints the comparison table
/// and writes <out>/report.html. An arm that is finished or diverged with the same configuration
/// is kept, one that was interrupted continues from its checkpoint. A diverged arm is a result; an
/// arm that fails is reported and does not stop the others. Returns ok, the code of the signal
/// that stopped it, or the code of the first arm that failed. Throws OutputError, before anything
/// is trained, if an arm's directory holds another run or the sweep's cannot be made.
Exit run_sweep(const SweepConfig& sweep, const SweepRequest& request);

/// What would be trained: one line an arm with parameters, tokens and floating-point operations.
std::string describe_sweep(const SweepConfig& sweep);

}  // namespace difftape
