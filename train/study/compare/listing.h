#pragma once
// Runs one line each: how far they are, and what they reached.

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "train/run/records/run_files.h"
#include "train/study/compare/run_record.h"
#include "train/system/text_table.h"

namespace difftape::study {

struct ListedRun {
  std::filesystem::path dir;
  run::RunState state = run::RunState::running;
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
class RunList {
 public:
  /// Reads the runs again whose files have changed since the last call. Throws what run_directories
  /// throws.
  void read(std::span<const std::filesystem::path> dirs);

  const std::vector<ListedRun>& runs() const { return runs_; }
  /// What cannot be read, and why, a line each.
  const std::vector<std::string>& left_out() const { return left_out_; }
  system::Table table() const { return table_of(runs_); }
  /// "2 finished, 1 running"; "no run".
  std::string states() const;
  bool any_running() const;

 private:
  /// A run as it was when its files were so.
  struct Known {
    std::string files;
    ListedRun run;
    std::string error;  ///< why it cannot be read; empty if it can
  };

  std::map<std::filesystem::path, Known> known_;
  std::vector<ListedRun> runs_;
  std::vector<std::string> left_out_;
};

}  // namespace difftape::study
