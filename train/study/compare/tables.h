#pragma once
// The headline of a study, and its tables of runs, arms and learning rates, for the terminal and
// the page. The columns are a loop over the registry of quantities.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "train/study/compare/lr_curves.h"
#include "train/study/compare/quantities.h"
#include "train/study/compare/study.h"
#include "train/system/text_table.h"

namespace difftape::study {

/// Formats a number as its quantity requires; "-" for NaN.
std::string written(double value, Format format);

/// Returns one row per run, in the order of Study::runs, compared with the first run of the
/// baseline of its task.
system::Table run_table(const Study& study);

/// Returns one row per arm and learning rate: means over its complete runs, and losses over
/// finished ones with the half-width of their 95 % interval.
system::Table study_table(const Study& study);
/// Explains the columns that run_table or study_table shows.
std::string columns_note(const system::Table& table);
/// Returns how many pairs of runs the differences of study_table exclude because one diverged;
/// empty if none.
std::string dropped_note(const Study& study);

/// Returns one row per arm with a ladder of two or more learning rates: lr* with the loss there,
/// the gap to the baseline, each at its own rate, and the sensitivity.
system::Table lr_table(std::span<const LrCurve> curves);
/// Returns one sentence for each arm of that table without lr*, with the reason.
std::vector<std::string> lr_refusals(std::span<const LrCurve> curves);

/// Returns the arm with the lowest validation loss and its distance to the baseline; for the
/// baseline itself, to the next arm. It adds the 95 % interval of the difference, paired by seed
/// and not corrected for the choice of arm and learning rate. Each arm counts at its best learning
/// rate among those at which no complete run diverged; arms without one are listed as left out.
/// There is one line per task, a shorter one if there are several, and no newline at the end.
std::string headline(const Study& study);

/// Explains a study of several tasks; empty for one task.
std::string tasks_note(const Study& study);

/// Returns a text with "nats per byte" for "nats per token" if all runs read text as bytes.
std::string with_loss_unit(const Study& study, std::string text);

/// Returns the headline and the tables with their notes for a terminal of `width` columns. The
/// table is run_table if each arm is a single run.
std::string tables_text(const Study& study, std::size_t width);

}  // namespace difftape::study
