#pragma once
// Metrics as a report reads them from metrics.jsonl: over the steps, over the layers, thinned; and
// what each arm reaches at each learning rate, and how sensitive it is to it.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "train/run/records/metrics.h"
#include "train/stats/descriptive.h"
#include "train/stats/interval.h"
#include "train/stats/sensitivity.h"
#include "train/stats/spikes.h"
#include "train/study/compare/study.h"

namespace difftape::study {

using stats::Series;

/// A metric where it was logged, infinities included. No points if it never was.
Series logged(const run::MetricsTable& metrics, const std::string& name);
/// A metric where it is finite.
Series curve(const run::MetricsTable& metrics, const std::string& name);

/// A metric in all layers ("attn/entropy/0", "attn/entropy/1", ...) where it was logged, and the
/// values of the last step that logged any, without NaN.
std::vector<Series> layers_of(const run::MetricsTable& metrics, const std::string& name);
std::vector<double> last_layers(const run::MetricsTable& metrics, const std::string& name);
/// Whether there is a column of that name, or of that metric in any layer.
bool has_metric(const run::MetricsTable& metrics, const std::string& name);

/// The points of a curve of losses or gradient norms that are spikes by a rule.
Series spikes(const Series& curve, const stats::SpikeRule& rule, stats::SpikeSeries holds);

/// At most about `points` points of a curve: its first, its last, and the smallest and the largest
/// of each of points / 2 equal stretches, so that no peak is lost.
Series decimate(const Series& curve, std::size_t points);

/// An arm at one learning rate.
struct LrPoint {
  double lr;
  stats::Interval loss;  ///< of `values`
  int runs, diverged;    ///< complete runs, and how many of them diverged
  /// Final validation losses, nats per token, capped at the initial loss (capped_loss), by
  /// ascending seed. A run whose first training loss is not known takes the mean of the arm's
  /// others.
  std::vector<double> values;
  std::vector<std::uint64_t> seeds = {};  ///< of `values`
  /// Complete runs that failed: they diverged, or ended at or above RunRecord::failing_loss.
  int failed = 0;
};

/// The points of an arm at the learning rates with a complete run, ascending.
std::vector<LrPoint> lr_points(const Arm& arm);
/// Of the points where a run finished that with the smallest share of failed runs; of several the
/// one of the lowest mean loss. nullptr if no run finished. The mean is one of trained runs alone
/// where no run failed.
const LrPoint* best_point(std::span<const LrPoint> points);

struct LrCurve {
  std::string arm;
  std::vector<LrPoint> points;
  stats::Interval sensitivity;       ///< half_width: half the distance of the limits
  stats::Limits sensitivity_limits;  ///< bootstrap over the seeds at each learning rate
};

/// One curve an arm. The sensitivity is NaN for an arm of one learning rate, or of which no
/// run trained.
std::vector<LrCurve> lr_curves(const Study& study);

}  // namespace difftape::study
