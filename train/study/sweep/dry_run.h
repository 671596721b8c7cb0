#pragma once
// What a sweep would train, and about how long that takes.

#include "train/study/sweep/sweep.h"

namespace difftape::study {

/// Prints one line a run: name, state, parameters, tokens, steps, operations and estimated time,
/// and when the whole sweep would be done. Times a few steps of each model and shape of data, in
/// all for about ten seconds; shapes for which no time is left are estimated by their operations.
/// Writes nothing. Throws as run_sweep does for directories that hold something else.
void dry_run(const SweepConfig& sweep, const SweepRequest& request);

}  // namespace difftape::study
