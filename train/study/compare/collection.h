#pragma once
// The runs that a report is about: which directories are meant, and what is to be said of them.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "train/study/compare/run_record.h"

namespace difftape::study {

/// Calls runs that share a name by their directory instead.
void name_apart(std::vector<RunRecord>& runs);

struct Collection {
  std::vector<RunRecord> runs;
  std::vector<std::string> notes;  ///< a line each: what was left out or is not complete,
                                   ///< and why; that runs are of several commits or builds
};

/// Loads runs. A directory without status.json stands for every run directory below it, in the
/// order of its index.csv if it has one, else by path; a run that is given twice counts once. A run
/// that cannot be read is left out with a note. Runs that share a name are called by their
/// directory. Throws MissingInput if a directory neither is nor holds a run, and
/// DataError, with what is wrong with each, if no run is left.
Collection collect_runs(std::span<const std::filesystem::path> dirs);

}  // namespace difftape::study
