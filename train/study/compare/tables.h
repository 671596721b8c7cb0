#pragma once
// The tables of runs, arms and learning rates, for the terminal and for the page. What is compared
// stands in the registry of quantities; the columns are a loop over it.

#include <string>

#include "train/study/compare/quantities.h"
#include "train/study/compare/study.h"
#include "train/system/text_table.h"

namespace difftape::study {

/// A number in the format of its quantity, "-" for NaN.
std::string written(double value, Format format);

/// One row a run, in the order of Study::runs; compared with the first run of the baseline of its
/// task.
system::Table run_table(const Study& study);

/// One row an arm and learning rate: numbers are means over its complete runs, losses those of runs
/// that finished with the half-width of their 95 % interval; differences to the baseline of the
/// task are paired by seed at the same learning rate, their p values corrected by Holm over the
/// table.
system::Table study_table(const Study& study);

/// How many pairs of runs the differences of study_table leave out because one of the two
/// diverged; empty if none.
std::string dropped_note(const Study& study);

/// One row an arm with complete runs at two learning rates or more: its sensitivity to the rate,
/// and the best of the rates at which no run failed (LrPoint::failed).
system::Table sensitivity_table(const Study& study);

}  // namespace difftape::study
