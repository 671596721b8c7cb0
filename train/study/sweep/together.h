#pragma once
// A sweep by processes that mpirun started, each of which trains one run at a time.

#include "train/study/sweep/sweep.h"

namespace difftape::study {

/// The same as run_sweep, and what it throws: `mpirun -n 4 difftape sweep SWEEP --launcher mpi`. A
/// process takes the first run that none has taken (a file that is made once, in <out>/mpi), trains
/// it in request.jobs workers, one if that is 0, on the cores that mpirun gave it, and takes the
/// next; the first process compares them at the end. All must call it, and return the same.
system::Exit run_sweep_together(const SweepConfig& sweep, const SweepRequest& request);

}  // namespace difftape::study
