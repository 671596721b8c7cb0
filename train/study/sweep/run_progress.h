#pragma once
// Tracks the progress of a sweep's runs: on disk before the sweep resumes, in runs.csv
// (compare/runs_csv.h), and while workers train. A terminal shows permanent lines and, below
// them, a table that is rewritten in place; other consoles get the lines only.

#include <filesystem>
#include <limits>
#include <map>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "train/run/records/progress.h"
#include "train/run/records/run_files.h"
#include "train/study/sweep/sweep_config.h"
#include "train/system/child.h"
#include "train/system/exit.h"

namespace difftape::study {

struct RunProgress {
  run::RunState state = run::RunState::queued;
  bool on_disk = false;  ///< the directory contains this run with its status.json
  bool selected = true;  ///< to be trained in this sweep unless it is complete
  Index done = 0;        ///< steps already done when the run resumes or resumed
  Index step = 0;        ///< the last logged step
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< at that step, nats per token
  system::Exit exit = system::Exit::ok;                    ///< exit code of a failed run
  std::string error = {};                                  ///< reason of the failure

  bool complete() const { return run::is_complete(state); }
  bool waits() const { return selected && state == run::RunState::queued; }
};

/// Returns the progress of a run by its directory: new, complete, or interrupted, which is queued
/// again. A run that cannot be read has failed. Throws OutputError if the directory of a selected
/// run contains anything else.
RunProgress inspect(const SweepRun& run);

/// Reads the last logged step and its loss.
void read_last_step(const std::filesystem::path& run_dir, RunProgress& progress);

/// Records the result of a worker from its exit code and status.json. `message` is the worker's
/// last one; `sent_signal` is the signal that the sweep sent, or 0. A worker killed by that signal
/// was stopped.
void finish(const std::filesystem::path& run_dir, const system::ExitStatus& exit_status,
            int sent_signal, const std::string& message, RunProgress& progress);

/// The status on the console: permanent lines above a table that is rewritten in place.
class StatusTable {
 public:
  StatusTable(std::ostream& console, const run::ConsoleStyle& style)
      : console_(console), style_(style) {}
  ~StatusTable() { erase(); }
  StatusTable(const StatusTable&) = delete;
  StatusTable& operator=(const StatusTable&) = delete;

  /// Writes a permanent line.
  void line(std::string_view text);
  /// Returns whether draw() shows anything.
  bool live() const { return style_.tty; }
  /// Replaces the table; lines are cut to the width of the terminal.
  void draw(const std::vector<std::string>& lines);

 private:
  void erase();

  std::ostream& console_;
  run::ConsoleStyle style_;
  std::size_t drawn_ = 0;  ///< lines of the table on the screen
};

/// Returns "12/63 done  2 running  47 queued  1 diverged  1 failed  ETA 12m03s". `done` counts
/// finished and diverged runs; other counts of 0 are omitted.
std::string describe_counts(std::span<const RunProgress> runs, double eta);

/// Returns "finished, val 1.4012, 62100 tokens/s", "diverged at step 12 (train/loss)" or
/// "failed: ...".
std::string describe_result(const std::filesystem::path& run_dir, const RunProgress& progress);

/// Returns the seconds until all selected runs are complete at the mean FLOP rate of the `elapsed`
/// seconds so far; NaN before the first step.
double sweep_eta(std::span<const SweepRun> runs, std::span<const RunProgress> progress,
                 double elapsed);

/// Returns the floating-point operations of one training step.
double flops_per_step(const run::Config& config);

/// Maintains `<sweep>/runs.csv`.
class SweepRuns {
 public:
  /// Throws OutputError if runs.csv exists and was not written by a sweep.
  explicit SweepRuns(const SweepConfig& sweep);

  /// Reads a run again and replaces its row. Numbers stay empty if it cannot be read.
  void update(std::size_t run, const RunProgress& progress);
  /// Replaces the file. Throws OutputError.
  void write() const;

 private:
  const SweepConfig* sweep_;
  std::vector<Row> rows_;
};

}  // namespace difftape::study
