#pragma once
// Many runs as one experiment: arms, the learning rates each was trained at, the seeds at each.
// Statistics count complete runs alone; a run that diverged is a result.

#include <span>
#include <string>
#include <vector>

#include "train/stats/interval.h"
#include "train/stats/sensitivity.h"
#include "train/study/compare/summary.h"
#include "train/system/text_table.h"

namespace difftape::study {

/// The runs of an arm at one learning rate that differ in run.seed alone, by ascending seed.
struct Cell {
  double lr;
  std::vector<const RunRecord*> runs;
};

struct Arm {
  std::string name;
  std::vector<Cell> cells;  ///< ascending lr
};

struct Study {
  std::vector<Arm> arms;     ///< in the order of their first runs
  std::size_t baseline = 0;  ///< which arm the others are compared with
};

/// Groups `runs`, which must outlive the study, by (run.arm, optim.lr, run.seed). Runs of one arm
/// that differ in another key become arms of their own, called "<arm> <key>=<value>"; so does the
/// second of two runs with the same configuration, called by its directory: a repetition with the
/// same seed is no second sample. `baseline` is the name of an arm, "" the arm of the first run.
/// Throws UsageError without runs and for a baseline that does not exist, and DataError for runs
/// of different data, length of training or batch, which no number compares.
Study make_study(std::span<const RunRecord> runs, const std::string& baseline = "");

/// Whether runs of one arm may differ in a key: what a run is called, the rate that is swept
/// (min_lr follows it), and what only watches.
bool is_shared(const std::string& key);

/// An arm at one learning rate.
struct LrPoint {
  double lr;
  stats::Interval loss;  ///< of `values`
  int runs, diverged;    ///< complete runs, and how many of them diverged
  /// Final validation losses, nats a token, capped at the loss at init (capped_loss), by ascending
  /// seed. A run whose first training loss is not known takes the mean of the arm's others.
  std::vector<double> values;
};

/// The points of an arm at the rates with a complete run, ascending.
std::vector<LrPoint> lr_points(const Arm& arm);
/// The point of the lowest mean loss among those where a run finished; nullptr if none did.
const LrPoint* best_point(std::span<const LrPoint> points);

struct LrCurve {
  std::string arm;
  std::vector<LrPoint> points;
  stats::Interval sensitivity;       ///< half_width: half the distance of the limits
  stats::Limits sensitivity_limits;  ///< bootstrap over the seeds at each rate
};

/// One curve an arm. The sensitivity is NaN for an arm of one rate, or whose runs all diverged.
std::vector<LrCurve> lr_curves(const Study& study);

/// One row an arm and learning rate: numbers are means over its complete runs, losses those of runs
/// that finished with the half-width of their 95 % interval; differences to the baseline are paired
/// by seed at the same rate, their p values corrected by Holm over the table.
system::Table runs_table(const Study& study);
/// One row an arm with a sensitivity or a best rate.
system::Table sensitivity_table(const Study& study);
/// One row a claim: claim, source, measured, verdict (train/report/claims).
system::Table verdict_table(const Study& study);

/// "2 finished, 1 diverged at 120".
std::string describe_states(std::span<const RunRecord* const> runs);

/// Everything above as text for a terminal of `width` columns, newline at the end. Where each arm
/// is one run, the comparison of single runs stands for the table of arms.
std::string study_text(const Study& study, std::size_t width);

}  // namespace difftape::study
