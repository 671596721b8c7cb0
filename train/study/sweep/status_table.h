#pragma once
// What a sweep says while its workers run: on a terminal a table that is rewritten in place, below
// the lines that stay; otherwise those lines alone.

#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/run/records/progress.h"
#include "train/study/sweep/run_progress.h"

namespace difftape::study {

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

/// "finished, val 1.4012, 62.1k tok/s", "diverged at step 12 (train/loss)", "failed: ...".
std::string describe_result(const std::filesystem::path& run_dir, const RunProgress& progress);

/// Seconds until all chosen runs are complete, if operations go on as in the `elapsed` seconds so
/// far; NaN before the first step.
double sweep_eta(std::span<const SweepRun> runs, std::span<const RunProgress> progress,
                 double elapsed);

/// Floating-point operations of one training step.
double flops_per_step(const run::Config& config);

}  // namespace difftape::study
