#pragma once
// Tables of a study: runs, arms and learning rates, for the terminal and
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
/// baseline.
system::Table run_table(const Study& study);

/// Returns one row per arm: its own learning rate and runs (LrCurve::own), their loss, the
/// difference to the baseline at its own rate with its 95 % interval, spikes and gradient norm.
system::Table arm_table(const Study& study, std::span<const LrCurve> curves);
/// Explains the columns that run_table or arm_table shows.
std::string columns_note(const Study& study, const system::Table& table);

/// Returns one row per arm with a ladder of two or more learning rates: lr* with the loss there,
/// and the sensitivity.
system::Table lr_table(std::span<const LrCurve> curves);
std::string lr_note(const Study& study);
/// Returns one sentence for each arm of that table without lr*, with the reason.
std::vector<std::string> lr_refusals(std::span<const LrCurve> curves);

/// Returns a text of this program with "nats per byte" for "nats per token" if all runs read text
/// as bytes. Words of users must not pass through it.
std::string with_loss_unit(const Study& study, std::string text);

/// Returns the tables of each task with their notes for a terminal of `width` columns. The table is
/// run_table if each arm is a single run.
std::string tables_text(std::span<const Study> studies, std::size_t width);

}  // namespace difftape::study
