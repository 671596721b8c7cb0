#pragma once
// The runs that a report is about: which directories are meant, what is to be said of them, and
// what changes in them while they are trained.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/study/compare/run_record.h"
#include "train/system/text_table.h"

namespace difftape::study {

/// The run directories that are meant: a directory without status.json stands for every run
/// directory below it, in the order of its index.csv if it has one, else by path; a run that is
/// given twice counts once. Throws MissingInput if a directory neither is nor holds a run.
std::vector<std::filesystem::path> run_directories(std::span<const std::filesystem::path> dirs);

/// The files below a directory that say how far runs are, with sizes and times, and the locks that
/// are held: a text that differs when one of them was written.
std::string state_of(const std::filesystem::path& dir);

struct Collection {
  std::vector<RunRecord> runs;     ///< those of directories first, then those of indexes
  std::vector<std::string> notes;  ///< a line each: what was left out or is not complete,
                                   ///< and why; that runs are of several commits or builds
};

/// Loads the runs of run_directories. A run that cannot be read is left out with a note. Runs that
/// share a name are called by their directory. A file, or a directory that holds index.csv and no
/// run, is an index whose rows stand for its runs (run_index.h); in the directory of a sweep so do
/// the rows that it took from the results of another (sweep.results). Throws what run_directories
/// and pooled_runs throw, and DataError, with what is wrong with each, if no run is left.
Collection collect_runs(std::span<const std::filesystem::path> inputs);

/// The same for run directories and runs that are loaded already.
Collection collect_runs(std::span<const std::filesystem::path> dirs, std::vector<RunRecord> more);

/// The same; nothing as long as there is no run that can be read.
std::optional<Collection> collect_runs_so_far(std::span<const std::filesystem::path> inputs);

/// The folder of an input of collect_runs: its own, or that of an index that is given as a file.
std::filesystem::path folder_of(const std::filesystem::path& input);

/// Run directories that are looked at again and again while the runs are trained.
class RunWatch {
 public:
  /// Run directories, or those that hold runs or will. Throws MissingInput for what is no
  /// directory.
  explicit RunWatch(std::vector<std::filesystem::path> dirs);

  /// Whether a file of a run was written since the last call; true at first.
  bool changed();
  /// Whether a sweep that goes on has a run that is running or queued.
  bool more_to_come() const;

 private:
  std::vector<std::filesystem::path> dirs_;
  std::string seen_;  ///< paths, sizes and times of the files
};

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
