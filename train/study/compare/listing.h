#pragma once
// Runs one line each: how far they are, and what they reached.

#include <string>
#include <vector>

#include "train/study/compare/run_record.h"
#include "train/system/text_table.h"

namespace difftape::study {

/// The table of runs without a row: directory, state, steps, last losses, spikes, time of the last
/// write to status.json.
system::Table run_list();
/// The row of a run, which is called `name`. "-" where there is no such number.
std::vector<std::string> run_line(const RunRecord& run, const std::string& name);
/// The same as an object, with name, arm and where it diverged; null where there is none.
nlohmann::ordered_json run_object(const RunRecord& run);

}  // namespace difftape::study
