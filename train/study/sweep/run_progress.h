#pragma once
// How far the runs of a sweep are: on disk before it goes on, in index.csv (compare/run_index.h),
// and while its workers run. On a terminal that is a table that is rewritten in place, below the
// lines that stay; otherwise those lines alone.

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
  bool on_disk = false;  ///< the directory holds this run, whose status.json is there
  bool taken = false;    ///< it is complete in the results of another sweep, and not here
  bool partial = false;  ///< it holds what a run leaves that is killed before (run_files.h)
  bool selected = true;  ///< to be trained in this sweep, if it is not complete
  Index done = 0;        ///< steps from which it continues, or has continued
  Index step = 0;        ///< the last step that was logged
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< of that step, nats per token
  system::Exit exit = system::Exit::ok;                    ///< of a run that failed
  std::string error = {};                                  ///< why it failed

  bool complete() const { return run::is_complete(state); }
  bool waits() const { return selected && state == run::RunState::queued; }
};

/// Returns what the directory of a run holds: nothing that was trained, the complete run, or one
/// that broke off, which is queued again. One that cannot be read has failed. A run that is
/// complete in the results of another sweep alone is complete, with nothing on disk. Throws
/// OutputError if the directory of a selected run holds anything else.
RunProgress inspect(const SweepRun& run);

/// Reads the last logged step and its loss.
void read_last_step(const std::filesystem::path& run_dir, RunProgress& progress);

/// Takes the result of a worker from its exit code and status.json. `message` is the worker's last
/// one, `sent_signal` the signal that the sweep sent it or 0; a worker that it killed was stopped.
void finish(const std::filesystem::path& run_dir, const system::ExitStatus& exit_status,
            int sent_signal, const std::string& message, RunProgress& progress);

class StatusTable {
 public:
  StatusTable(std::ostream& console, const run::ConsoleStyle& style)
      : console_(console), style_(style) {}
  ~StatusTable() { erase(); }
  StatusTable(const StatusTable&) = delete;
  StatusTable& operator=(const StatusTable&) = delete;

  /// Writes a line that stays.
  void line(std::string_view text);
  /// True if drawing shows anything.
  bool live() const { return style_.tty; }
  /// Replaces the table; lines are cut to the width of the terminal.
  void draw(const std::vector<std::string>& lines);

 private:
  void erase();

  std::ostream& console_;
  run::ConsoleStyle style_;
  std::size_t drawn_ = 0;  ///< lines of the table on the screen
};

/// "12/63 done  2 running  47 queued  1 diverged  1 failed  ETA 12m03s"; what is 0 is left out but
/// for `done`, which counts finished and diverged runs.
std::string describe_counts(std::span<const RunProgress> runs, double eta);

/// "finished, val 1.4012, 62100 tokens/s", "diverged at step 12 (train/loss)", "failed: ...".
std::string describe_result(const std::filesystem::path& run_dir, const RunProgress& progress);

/// Seconds until all selected runs are complete, if operations go on as in the `elapsed` seconds so
/// far; NaN before the first step.
double sweep_eta(std::span<const SweepRun> runs, std::span<const RunProgress> progress,
                 double elapsed);

/// Floating-point operations of one training step.
double flops_per_step(const run::Config& config);

/// Marks the runs that SweepConfig::results has complete, of the same arm, learning rate, seed and
/// configuration. Returns why another configuration stands in the place of one of them, or nothing.
std::string take_results(SweepConfig& sweep);

/// Keeps `<sweep>/index.csv` with the files beside it: index_columns(), losses of domains, and the
/// keys that are swept or differ between runs, in the order of the sweep.
class SweepIndex {
 public:
  /// Throws OutputError if an index.csv is there that no sweep wrote.
  explicit SweepIndex(const SweepConfig& sweep);

  /// Reads a run again and replaces its row. Its measured numbers stay empty if it cannot be read.
  void update(std::size_t run, const RunProgress& progress);
  /// Replaces the files. Throws OutputError.
  void write() const;

 private:
  const SweepConfig* sweep_;
  std::vector<std::string> keys_;  ///< columns of the configuration
  run::FlatConfig shared_;         ///< the other keys, which all runs have in common
  std::vector<IndexRow> rows_;
  std::map<std::string, std::vector<double>> groups_;  ///< losses by name of the run
};

}  // namespace difftape::study
