#pragma once
// The tables of runs, arms and learning rates, for the terminal and for the page. What is compared
// stands in the registry of quantities; the columns are a loop over it.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "train/study/compare/lr_curves.h"
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

/// One row an arm whose seeds ran at two learning rates or more: of its ladder (LrCurve) the best
/// learning rate lr* with the loss there, the gap to the baseline, each at its own, and the
/// sensitivity to the rate.
system::Table lr_table(std::span<const LrCurve> curves);
/// Why arms of that table have no lr*, a sentence each.
std::vector<std::string> lr_refusals(std::span<const LrCurve> curves);

/// Which arm reached the lowest validation loss, how far below the baseline (the baseline itself:
/// below the next arm), and with which evidence: the 95 % interval of the difference paired by
/// seed, not corrected for having chosen arm and learning rate. Each arm is taken at its best
/// learning rate among those at which no complete run diverged; one that has no
/// such rate is left out, and named as left out. Of several tasks a line each, shorter: without
/// the learning rates, the interval in brackets (tasks_note says so). No newline at the end.
std::string answer(const Study& study);

/// What is to know where the runs are of several tasks; empty if they are of one.
std::string tasks_note(const Study& study);

/// The answer and the tables as text for a terminal of `width` columns, with what is to know about
/// them. Where each arm is one run, that of single runs.
std::string tables_text(const Study& study, std::size_t width);

}  // namespace difftape::study
