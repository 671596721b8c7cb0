#pragma once
// Which runs a report is about: run directories, directories that hold them, and what of them can
// be read.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "train/study/compare/run_record.h"

namespace difftape::study {

struct Collection {
  std::vector<RunRecord> runs;
  std::vector<std::string> notes;  ///< a line each: what was left out or is not complete, and why
};

/// Loads runs. A directory without status.json stands for every run directory below it, in the
/// order of its index.csv if it has one, else by path; a run that is given twice counts once. A run
/// that cannot be read is left out with a note. Runs that share a name are called by their
/// directory, as load_runs does. Throws MissingInput if a directory neither is nor holds a run, and
/// DataError, with what is wrong with each, if no run is left.
Collection collect_runs(std::span<const std::filesystem::path> dirs);

}  // namespace difftape::study
