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
#include "train/study/compare/study.h"

namespace difftape::study {

using LossBySeed = std::map<std::uint64_t, double>;
/// Returns the mean of a - b over the seeds that both have.
stats::PairedDifference paired(const LossBySeed& a, const LossBySeed& b);

/// An arm at one learning rate.
struct LrPoint {
  double lr;
  stats::Interval loss;  ///< mean of `values`
  int runs, diverged;    ///< number of complete runs, and of diverged ones among them
  /// Final validation losses by ascending seed, nats per token, capped at the loss at init. An
  /// unknown loss at init is replaced by the mean of the arm's other runs.
  std::vector<double> values;
  std::vector<std::uint64_t> seeds = {};  ///< seeds of `values`

  LossBySeed by_seed() const;
};

std::vector<LrPoint> lr_points(const Arm& arm);
/// Returns the point with the smallest fraction of diverged runs and, among several, the lowest
/// mean loss; nullptr if no run finished.
const LrPoint* best_point(std::span<const LrPoint> points);

/// Final loss of an arm at its lr* minus the baseline's at its own lr*, paired by seed. If each ran
/// at one rate and the two differ, for example rates extrapolated from smaller models, these
/// replace lr*.
struct LrGap {
  stats::PairedDifference difference;  ///< no pairs if it is unknown
  /// True: from runs at rates that their seeds did not choose. False: from the ladder's best rate.
  bool fresh = false;
};

/// An arm over learning rates. An arm of a study has one size and one task.
struct LrCurve {
  std::string arm;                   ///< name in the study
  std::vector<LrPoint> points = {};  ///< points of all its runs
  std::string name = {};             ///< run.arm
  std::size_t task = 0;              ///< index in Study::tasks
  std::string task_words = {};       ///< entry of Study::tasks
  std::string d_model = {};          ///< model.d_model
  std::int64_t parameters = 0;
  bool is_baseline = false;  ///< baseline of its size and task

  /// The ladder: at least three learning rates, if some seed has them, and the seeds that ran at
  /// all of these. Among several choices, it is the one with the most runs.
  std::vector<std::uint64_t> seeds = {};
  std::vector<LrPoint> ladder = {};
  stats::LrOptimum optimum = {};          ///< optimum of the ladder
  stats::Interval sensitivity = {};       ///< of the ladder; half_width is half of the limits
  stats::Limits sensitivity_limits = {};  ///< bootstrap over the seeds at each rung
  LrGap gap = {};                         ///< no pairs for the baseline itself
};

std::vector<LrCurve> lr_curves(const Study& study);

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
