#pragma once
// The comparison of runs as a table of text, for the terminal and for the page.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "train/log/table.h"
#include "train/report/summary.h"

namespace difftape {

/// One row a run. `baseline` is the position of the run whose validation loss the others are
/// compared with.
Table compare(std::span<const RunSummary> runs, std::size_t baseline = 0);

/// The table for the terminal, aligned, and what a single run can decide; a newline at the end.
std::string comparison_table(std::span<const RunSummary> runs, std::size_t baseline = 0);

/// "finished", "diverged at step 120 (train/loss)", "running 20/500".
std::string describe_state(const RunStatus& status);

}  // namespace difftape
