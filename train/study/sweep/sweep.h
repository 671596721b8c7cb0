#pragma once
// Trains every run of a sweep, then compares them.

#include <iosfwd>

#include "core/error.h"
#include "train/study/sweep/sweep_config.h"
#include "train/system/exit.h"

namespace difftape::study {

struct SweepRequest {
  std::vector<std::string> command;  ///< recorded in each env.json
  std::ostream* console;
  int console_descriptor = -1;
  int jobs = 0;  ///< worker processes; 0: measure what is faster
  /// The program that workers run, which must know the command `worker`.
  std::string program = "/proc/self/exe";
};

/// Trains the chosen runs in worker processes, each in its run directory, keeps <out>/index.csv,
/// prints the comparison table and writes <out>/report.html over all runs that are there. A run
/// that is finished or diverged with the same configuration is kept, one that was interrupted
/// continues from its checkpoint. A diverged run is a result; one that fails is reported and does
/// not stop the others. Returns ok, the code of the signal that stopped it, or the code of the
/// first run that failed. Throws OutputError, before anything is trained, if a run's directory
/// holds something else, the sweep's cannot be made, or another process trains there.
system::Exit run_sweep(const SweepConfig& sweep, const SweepRequest& request);

}  // namespace difftape::study
