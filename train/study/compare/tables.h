#pragma once
// What the runs of a study say, in one sentence, and the tables of runs, arms and learning rates,
// for the terminal and for the page. Their columns are a loop over the registry of quantities.

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

/// One row per run, in the order of Study::runs, compared with the first run of the baseline of its
/// task.
system::Table run_table(const Study& study);

/// One row per arm and learning rate: means over its complete runs, losses over finished ones with
/// the half-width of their 95 % interval.
system::Table study_table(const Study& study);
/// How many pairs of runs those differences leave out because one diverged; empty if none.
std::string dropped_note(const Study& study);

/// One row per arm with a ladder of two learning rates or more: lr* with the loss there, the gap to
/// the baseline, each at its own rate, and the sensitivity.
system::Table lr_table(std::span<const LrCurve> curves);
/// Why arms of that table have no lr*, one sentence each.
std::vector<std::string> lr_refusals(std::span<const LrCurve> curves);

/// Returns which arm reached the lowest validation loss, how far below the baseline (the baseline
/// itself: below the next arm), and the 95 % interval of the difference paired by seed, uncorrected
/// for having chosen arm and learning rate. Each arm counts at its best learning rate among those
/// at which no complete run diverged; an arm without one is named as left out. One line per task,
/// of several tasks a shorter one. No newline at the end.
std::string headline(const Study& study);

/// Explains a study of several tasks; empty for one task.
std::string tasks_note(const Study& study);

/// The answer and the tables for a terminal of `width` columns, with their notes. The table is
/// run_table where each arm is one run.
std::string tables_text(const Study& study, std::size_t width);

}  // namespace difftape::study
