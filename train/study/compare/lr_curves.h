#pragma once
// What each arm reaches at each learning rate, and how sensitive it is to it.

#include <span>
#include <string>
#include <vector>

#include "train/stats/interval.h"
#include "train/stats/sensitivity.h"
#include "train/study/compare/study.h"

namespace difftape::study {

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

}  // namespace difftape::study
