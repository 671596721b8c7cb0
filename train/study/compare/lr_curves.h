#pragma once
// What each arm reaches at each learning rate, at which it does best, and how sensitive it is to
// it.

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

/// The final loss of a run, and its loss in each group of held-out documents; no groups if they
/// were not stored, or if the loss is the one at initialization.
struct SeedLoss {
  double loss;
  std::vector<double> groups = {};
};
using LossBySeed = std::map<std::uint64_t, SeedLoss>;
/// Returns the mean of a less b over the seeds that both have.
stats::PairedDifference paired(const LossBySeed& a, const LossBySeed& b);

/// An arm at one learning rate.
struct LrPoint {
  double lr;
  stats::Interval loss;  ///< of `values`
  int runs, diverged;    ///< complete runs, and how many of them diverged
  /// Final validation losses by ascending seed, nats per token, at most the loss at init: the
  /// run's, or the mean of the arm's others where it is not known.
  std::vector<double> values;
  std::vector<std::uint64_t> seeds = {};         ///< of `values`
  std::vector<std::vector<double>> groups = {};  ///< SeedLoss::groups of each value

  LossBySeed by_seed() const;
};

std::vector<LrPoint> lr_points(const Arm& arm);
/// Returns the point with the smallest fraction of diverged runs, of several the one of the lowest
/// mean loss; nullptr if no run finished.
const LrPoint* best_point(std::span<const LrPoint> points);

/// The final loss of an arm at its own lr* less the baseline's at its own, paired by seed.
struct LrGap {
  stats::PairedDifference difference;  ///< no pairs where there is none
  /// Of runs at lr* whose seeds did not choose it; else of the ladder's seeds at its lowest rung.
  bool fresh = false;
};

/// An arm over learning rates. An arm of a study is of one size and one task.
struct LrCurve {
  std::string arm;                   ///< as in the study
  std::vector<LrPoint> points = {};  ///< of all its runs
  std::string name = {};             ///< run.arm
  std::size_t task = 0;              ///< in Study::tasks
  std::string task_words = {};       ///< Study::tasks of it
  std::string d_model = {};          ///< model.d_model
  std::int64_t parameters = 0;
  bool is_baseline = false;  ///< of its size and task

  /// The ladder: at least three learning rates, if some seed has them, and the seeds that ran at
  /// all of these; of several choices the one with the most runs.
  std::vector<std::uint64_t> seeds = {};
  std::vector<LrPoint> ladder = {};
  stats::LrOptimum optimum = {};          ///< of the ladder
  stats::Interval sensitivity = {};       ///< of the ladder; half the distance of the limits
  stats::Limits sensitivity_limits = {};  ///< bootstrap over the seeds at each rung
  LrGap gap = {};                         ///< no pairs of the baseline itself
};

std::vector<LrCurve> lr_curves(const Study& study);

inline constexpr const char* kLrOptimumFile = "lr_optimum.csv";

/// One line per arm and size that ran at several learning rates: run.arm, model.d_model,
/// parameters, lr_star, its 95 % limits, the parabola's loss (nats per token), the seeds that chose
/// it, and the reason why there is none. Two curves of one arm and size, as of two tasks, have a
/// reason each.
std::string lr_optima_csv(std::span<const LrCurve> curves);

struct OwnRate {
  std::string arm, d_model;
  double lr;                         ///< NaN: see reason
  std::vector<std::uint64_t> seeds;  ///< that chose it
  std::string reason;
};

struct OwnRates {
  std::filesystem::path file;
  std::vector<OwnRate> rates;

  /// Throws DataError if the file has none for run.arm at model.d_model, or gives a reason instead.
  const OwnRate& of(std::string_view arm, std::string_view d_model) const;
};

/// Throws MissingInput if the file is not there, and DataError if it is not such a file, a number
/// in it is none, or it names an arm and size twice.
OwnRates read_own_rates(const std::filesystem::path& file);

}  // namespace difftape::study
