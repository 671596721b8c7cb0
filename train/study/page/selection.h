#pragma once
// What of many runs a page shows: the logged quantities that are drawn, those of the registry of
// metrics that have a picture or those that are asked for by name; which runs a picture shows that
// has room for one learning rate; and the curve of a metric over runs that differ in their seed
// alone.

#include <span>
#include <string>
#include <vector>

#include "train/run/records/metric_registry.h"
#include "train/study/compare/lr_curves.h"
#include "train/study/compare/measures.h"

namespace difftape::study::page {

struct CurveChart {
  std::string name = {};  ///< its column in metrics.jsonl
  std::string title = {}, caption = {};
  bool log_scale = false;
  bool every_step = false;  ///< as run::Picture
  run::Bound bound = run::Bound::none;
  run::When when = run::When::step;
};

/// A quantity of many values a step, of layers, heads or parameters: a heat map an arm.
struct MapChart {
  std::string name;  ///< what its columns in metrics.jsonl begin with
  std::string title, caption;
  run::Per per = run::Per::layer;
  bool one_layer = false;  ///< the name is that of a list of one layer
};

struct Charts {
  std::vector<CurveChart> curves;
  std::vector<MapChart> maps;
  std::vector<std::string> notes;  ///< a line each: what was asked for and not logged
};

/// Without names those of run::kMetrics with a Picture. A name is one of that registry
/// ("optim/lr", "attn/entropy") or of metrics.jsonl ("attn/entropy/3", "optim/grad_norm/lm_head.
/// weight"). What no run logged is left out, with a note if it was named. Throws UsageError, with
/// the nearest name, for what is neither.
Charts select_charts(const Study& study, std::span<const std::string> names = {});

/// A row of a map: what follows the name of the quantity, "3" of layer 3, "3.0" of its first head.
struct MapRow {
  std::string name;
  Series values;  ///< finite
};
/// In the order of the numbers in their names; none if no row has a value.
std::vector<MapRow> map_rows(const run::MetricsTable& metrics, const std::string& quantity);

struct Input {
  const Study& study;
  const std::vector<LrCurve>& curves;  ///< one an arm, in its order
  double lr;                           ///< the learning rate that is shown at first
  Charts charts;
};

/// The learning rate of the baseline's best_point; its first one if no run of it finished. The
/// study has a run.
double best_lr(const Study& study, const std::vector<LrCurve>& curves);

/// The runs of an arm at a learning rate.
const Condition* shown_condition(const Arm& arm, double lr);

/// " at peak learning rate 3e-4"; empty if no arm has more than one.
std::string at_lr(const Input& input);

/// A dashed horizontal line of a chart, with its name.
struct Level {
  std::string name;
  double y;
};
/// The levels of a chart, of what every run of the study has the same of in env.json: of a loss
/// `data.best_loss` and `data.bigram_entropy`, what a model of pairs of tokens would reach, in nats
/// per token; of an accuracy `data.best_accuracy`, a share of scored targets.
std::vector<Level> levels_of(const CurveChart& chart, const Study& study);

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
Series decimate(const Series& series, std::size_t points);

/// The spikes of each run that count (measures::counted_spikes), at the value that was measured, by
/// step; infinities are left out.
Series seed_spikes(const Condition& condition, const std::string& metric);

std::vector<double> divergences(const Condition& condition);

}  // namespace difftape::study::page
