#pragma once
// Losses of each arm over learning rates, the arm's optimal learning rate, and its sensitivity to
// the learning rate.

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/stats/interval.h"
#include "train/stats/lr_optimum.h"
#include "train/study/compare/quantities.h"
#include "train/study/compare/study.h"

namespace difftape::study {

/// Returns the mean difference of a quantity, on its scale, over the seeds that both arms have.
/// Pairs without a number in both runs do not count.
stats::PairedDifference paired(const Quantity& metric, std::span<const Row* const> arm,
                               std::span<const Row* const> reference);

/// An arm at one learning rate.
struct LrPoint {
  double lr;
  stats::Interval loss;        ///< mean of `values`
  int runs, diverged;          ///< number of complete runs, and of diverged ones among them
  std::vector<double> values;  ///< final losses by ascending seed, nats per token
  std::vector<std::uint64_t> seeds = {};  ///< seeds of `values`
  std::vector<const Row*> of = {};        ///< runs of `values`
};

std::vector<LrPoint> lr_points(const Arm& arm);
/// Returns the point with the smallest fraction of diverged runs and, among several, the lowest
/// mean loss; nullptr if no run finished.
const LrPoint* best_point(std::span<const LrPoint> points);

/// The complete runs that stand for an arm in a comparison: all runs of an arm with one rate; else
/// the runs at lr* whose seeds did not choose it; else the runs at the rate of the lowest mean
/// loss.
struct OwnRuns {
  double lr = kNaN;
  std::vector<const Row*> runs = {};
  std::size_t chosen_from = 1;  ///< number of rates among which these runs chose theirs
};

/// Final loss of an arm at its own rate minus the baseline's at its own rate, paired by seed.
struct LrGap {
  stats::PairedDifference difference;  ///< no pairs if it is unknown
  /// True: from runs at rates that their seeds did not choose. False: from the ladder's best rate.
  bool fresh = false;
  /// False: the arm's own runs and the baseline's share no seed; these are the ladders' best rates.
  bool of_own_runs = true;
};

/// An arm over learning rates.
struct LrCurve {
  std::string arm;                   ///< name in the study
  std::vector<LrPoint> points = {};  ///< points of all its runs
  std::string task = {};             ///< of the study
  std::string d_model = {};          ///< model.d_model
  std::int64_t parameters = 0;
  bool is_baseline = false;  ///< baseline of its study
  const char* unit = "";     ///< of losses: "nats per byte"

  /// The ladder: at least three learning rates, if some seed has them, and the seeds that ran at
  /// all of these. Among several choices, it is the one with the most runs.
  std::vector<std::uint64_t> seeds = {};
  std::vector<LrPoint> ladder = {};
  stats::LrOptimum optimum = {};          ///< optimum of the ladder
  stats::Interval sensitivity = {};       ///< of the ladder; half_width is half of the limits
  stats::Limits sensitivity_limits = {};  ///< bootstrap over the seeds at each rung
  OwnRuns own = {};
  LrGap gap = {};  ///< no pairs for the baseline itself
};

std::vector<LrCurve> lr_curves(const Study& study);
/// Returns the curves of all studies in their order.
std::vector<LrCurve> lr_curves(std::span<const Study> studies);

inline constexpr const char* kLrOptimumFile = "lr_optimum.csv";

/// Returns lr_optimum.csv: one line per arm and size that ran at several learning rates. Columns
/// are run.arm, model.d_model, parameters, lr_star, its 95 % limits, the parabola's loss (nats per
/// token), the seeds that chose it, and the reason if there is none. Two curves of one arm and
/// size, for example of two tasks, both get a reason.
std::string lr_optima_csv(std::span<const LrCurve> curves);

struct OwnRate {
  std::string arm, d_model;
  double lr;                         ///< NaN: see reason
  std::vector<std::uint64_t> seeds;  ///< seeds that chose it
  std::string reason;
};

struct OwnRates {
  std::filesystem::path file;
  std::vector<OwnRate> rates;

  /// Returns true if the file has a line for run.arm at model.d_model.
  bool has(std::string_view arm, std::string_view d_model) const;
  /// Returns the rate of an arm. Throws DataError if the file has none for run.arm at
  /// model.d_model, or a reason instead.
  const OwnRate& of(std::string_view arm, std::string_view d_model) const;
};

/// Reads lr_optimum.csv. Throws MissingInput if the file does not exist. Throws DataError if it has
/// another header, an invalid number, or two lines of one arm and size.
OwnRates read_own_rates(const std::filesystem::path& file);

}  // namespace difftape::study
