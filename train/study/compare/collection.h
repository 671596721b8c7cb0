#pragma once
// Collects the runs of a report from directories and indexes, and lists them.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "train/study/compare/row.h"
#include "train/system/text_table.h"

namespace difftape::study {

/// Returns run directories. A directory without status.json is expanded to every run below it, in
/// the order of its runs.csv if it has one, else by path. Each run is returned once. Throws
/// MissingInput if a directory neither is nor contains a run.
std::vector<std::filesystem::path> run_directories(std::span<const std::filesystem::path> dirs);

struct Collection {
  std::vector<Row> runs;           ///< runs of directories first, then runs of indexes
  std::vector<std::string> notes;  ///< runs that are omitted or incomplete
  std::string baseline = {};       ///< of the first sweep that stored one (runs.csv)

  std::vector<const Row*> pointers() const {
    return mapped(runs, [](const Row& run) { return &run; });
  }
};

/// Loads the runs of run_directories. A run that cannot be read is omitted with a note. Runs with
/// the same name are named by their directory. The lines of a file, or of the runs.csv of a
/// directory without runs, replace its runs (runs_csv.h). Lines of runs whose directories are given
/// are omitted. Throws what run_directories and pooled_runs throw, and DataError with the error of
/// each run if no run can be read.
Collection collect_runs(std::span<const std::filesystem::path> inputs);

/// Returns the folder of an input of collect_runs: the input, or the folder of a file.
std::filesystem::path folder_of(const std::filesystem::path& input);

/// Directory, state, steps, last losses, spikes and last write time of a run; "-" or null for a
/// missing number. `object` also has name, arm, and where the run diverged.
struct ListedRun {
  std::vector<std::string> cells;
  nlohmann::ordered_json object;
};
ListedRun listed(const Row& run);
system::Table table_of(std::span<const ListedRun> runs);

/// Runs in the order of run_directories, without their metrics to save memory.
struct RunList {
  std::vector<ListedRun> runs;
  std::vector<std::string> left_out;  ///< unreadable runs with their errors
};
RunList list_runs(std::span<const std::filesystem::path> dirs);

}  // namespace difftape::study
