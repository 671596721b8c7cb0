#pragma once
// The runs of several indexes together.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "train/study/compare/run_record.h"

namespace difftape::study {

/// Returns the complete runs of several indexes. A run that two of them have with the same arm,
/// learning rate, seed, configuration and numbers counts once. Adds to `notes` which runs are not
/// complete. Throws DataError if the numbers differ, if two indexes are of different data, and what
/// read_index throws; MissingInput if no run is complete.
std::vector<RunRecord> pooled_runs(std::span<const std::filesystem::path> files,
                                   std::vector<std::string>& notes);

}  // namespace difftape::study
