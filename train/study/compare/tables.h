#pragma once
// The tables of runs, arms and learning rates, for the terminal and for the page. What is compared
// stands in the registry of quantities; the columns are a loop over it.

#include <cstddef>
#include <span>
#include <string>

#include "train/study/compare/quantities.h"
#include "train/study/compare/study.h"
#include "train/system/text_table.h"

namespace difftape::study {

/// A number in the format of its quantity, "-" for NaN.
std::string written(double value, Format format);

/// One row a run. `baseline` is the position of the run that the others are compared with.
system::Table run_table(std::span<const RunRecord* const> runs, std::size_t baseline = 0);

/// One row an arm and learning rate: numbers are means over its complete runs, losses those of runs
/// that finished with the half-width of their 95 % interval; differences to the baseline are paired
/// by seed at the same learning rate, their p values corrected by Holm over the table.
system::Table study_table(const Study& study);

/// One row an arm: its sensitivity to the learning rate and its best one.
system::Table sensitivity_table(const Study& study);

/// The tables as text for a terminal of `width` columns, with what is to know about them. Where
/// each arm is one run, that of single runs.
std::string tables_text(const Study& study, std::size_t width);

}  // namespace difftape::study
