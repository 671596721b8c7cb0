#pragma once
// The comparison of runs as a table of text, for the terminal and for the page.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "train/study/compare/summary.h"
#include "train/system/text_table.h"

namespace difftape::study {

/// One row a run. `baseline` is the position of the run whose validation loss the others are
/// compared with.
system::Table compare(std::span<const RunSummary> runs, std::size_t baseline = 0);

/// The table for the terminal, aligned, and what a single run can decide; a newline at the end.
std::string comparison_table(std::span<const RunSummary> runs, std::size_t baseline = 0);

/// "finished", "diverged at step 120 (train/loss)", "running 20/500".
std::string describe_state(const run::RunStatus& status);

}  // namespace difftape::study
