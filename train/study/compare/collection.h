#pragma once
// The runs that a report is about: which directories are meant, what is to be said of them, what
// changes in them while they are trained, and their list, one line each.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/study/compare/run_record.h"
#include "train/system/text_table.h"

namespace difftape::study {

/// Returns the run directories that are meant: a directory without status.json stands for every run
/// below it, in the order of its index.csv if it has one, else by path; each run counts once.
/// Throws MissingInput if a directory neither is nor holds a run.
std::vector<std::filesystem::path> run_directories(std::span<const std::filesystem::path> dirs);

/// Returns the files below a directory that say how far runs are, with sizes and times, and the
/// locks that are held: a string that differs when one of them was written.
std::string state_of(const std::filesystem::path& dir);

struct Collection {
  std::vector<RunRecord> runs;     ///< those of directories first, then those of indexes
  std::vector<std::string> notes;  ///< what was left out or is not complete
};

/// Loads the runs of run_directories. A run that cannot be read is left out with a note. Runs that
/// share a name are called by their directory. A file, or a directory that holds index.csv and no
/// run, is an index whose rows stand for its runs (run_index.h); so do the rows that a sweep took
/// from the results of another (sweep.results). Throws what run_directories and pooled_runs throw,
/// and DataError, with what is wrong with each, if no run is left.
Collection collect_runs(std::span<const std::filesystem::path> inputs);
/// The same for run directories and runs that are loaded already.
Collection collect_runs(std::span<const std::filesystem::path> dirs, std::vector<RunRecord> more);
/// The same; nothing as long as no run can be read.
std::optional<Collection> collect_runs_so_far(std::span<const std::filesystem::path> inputs);

/// Returns the folder of an input of collect_runs: its own, or that of an index file.
std::filesystem::path folder_of(const std::filesystem::path& input);

class RunWatch {
 public:
  /// Takes directories that are runs, or hold or will hold some. Throws MissingInput for others.
  explicit RunWatch(std::vector<std::filesystem::path> dirs);

  /// Returns whether a file of a run was written since the last call; true at first.
  bool changed();
  bool more_to_come() const;

 private:
  std::vector<std::filesystem::path> dirs_;
  std::string seen_;
};

/// Directory, state, steps, last losses, spikes and time of the last write of a run; "-" or null
/// for a missing number. `object` has name, arm and where it diverged, too.
struct ListedRun {
  std::vector<std::string> cells;
  nlohmann::ordered_json object;
};
ListedRun listed(const RunRecord& run);
system::Table table_of(std::span<const ListedRun> runs);

/// Runs in the order of run_directories. Metrics are dropped, since those of many runs need much
/// memory.
struct RunList {
  std::vector<ListedRun> runs;
  std::vector<std::string> left_out;  ///< what cannot be read, and why
};
RunList list_runs(std::span<const std::filesystem::path> dirs);

}  // namespace difftape::study
