#pragma once
// Which of many runs a picture shows that has room for one learning rate, and the curve of a metric
// over replicates: runs that differ in their seed alone.

#include <string>
#include <vector>

#include "train/study/compare/curves.h"
#include "train/study/compare/lr_curves.h"
#include "train/study/figures/plots.h"
#include "train/study/page/charts.h"

namespace difftape::study::page {

/// What every section of the page is made of.
struct Input {
  const Study& study;
  const std::vector<LrCurve>& curves;  ///< one an arm, in its order
  double lr;                           ///< the learning rate that is shown at first
  Charts charts;
};

/// The learning rate of the baseline's best_point; its first one if no run of it finished. The
/// study has a run.
double best_lr(const Study& study, const std::vector<LrCurve>& curves);

/// The runs of an arm at a learning rate. An arm with a single one stands for itself at every
/// other. Null if the arm was not trained at that learning rate.
const Condition* shown_condition(const Arm& arm, double lr);

/// "3e-4".
std::string lr_name(double lr);

/// " at peak learning rate 3e-4"; empty if no arm has more than one.
std::string at_lr(const Input& input);

/// The labelled lines of a chart, of what every run of the study has the same of in env.json: of a
/// loss `data.best_loss` and `data.bigram_entropy`, what a model of pairs of tokens would reach, in
/// nats per token; of an accuracy `data.best_accuracy`, a share of scored targets.
std::vector<svg::Level> levels_of(const CurveChart& chart, const Study& study);

/// The training time in seconds after each logged step of the condition's longest run, added up
/// over all resumes; no points if throughput was not logged.
Series training_clock(const Condition& condition);

/// At each step, over the runs that have a finite value there (a run that diverged has none any
/// more): their mean, the smallest and the largest value.
struct SeedCurve {
  std::vector<double> step, mean, low, high;  ///< same length
  bool banded = false;                        ///< more than one run
};
SeedCurve seed_curve(const Condition& condition, const std::string& metric);

/// At most about `points` points: the first, the last, and of each of equal stretches those with
/// the lowest and highest value of mean and band, so that no peak is lost.
SeedCurve decimate(const SeedCurve& curve, std::size_t points);

/// The spikes of each run that count (measures::counted_spikes), at the value that was measured, by
/// step; infinities are left out.
Series seed_spikes(const Condition& condition, const std::string& metric);

/// Steps at which runs diverged.
std::vector<double> divergences(const Condition& condition);

}  // namespace difftape::study::page
