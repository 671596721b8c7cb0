#pragma once
// Runs one line each: how far they are, and what they reached.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "train/study/compare/run_record.h"
#include "train/system/text_table.h"

namespace difftape::study {

struct ListedRun {
  /// Directory, state, steps, last losses, spikes, time of the last write to status.json; "-" where
  /// there is no such number.
  std::vector<std::string> cells;
  /// The same, with name, arm and where it diverged; null where there is none.
  nlohmann::ordered_json object;
};

/// The line of a run.
ListedRun listed(const RunRecord& run);
/// The table of lines.
system::Table table_of(std::span<const ListedRun> runs);

/// Runs in the order of run_directories (collection.h). Of each stays its line alone, since the
/// metrics of many runs need much memory.
struct RunList {
  std::vector<ListedRun> runs;
  std::vector<std::string> left_out;  ///< what cannot be read, and why, a line each
};
/// Throws what run_directories throws.
RunList list_runs(std::span<const std::filesystem::path> dirs);

}  // namespace difftape::study
