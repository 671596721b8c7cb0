#pragma once
// The sections of the page, each in the source of its name:
//   runs        tables of runs and learning rates, and verdicts on claims
//   settings    configurations
// The script draws the pictures of the others from data:
//   curves      metrics over the steps
//   maps        metrics of each layer over the steps, and accuracy by difficulty of a task
//   attention   maps of selected heads, from attention_maps.h5

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "train/run/records/metric_registry.h"
#include "train/study/compare/collection.h"
#include "train/study/compare/lr_curves.h"
#include "train/study/compare/measures.h"
#include "train/study/compare/study.h"

namespace difftape::study {
struct JudgedClaims;
}  // namespace difftape::study

namespace difftape::study::page {

struct CurveChart {
  std::string name = {};  ///< its column in metrics.jsonl
  std::string title = {}, caption = {};
  bool log_scale = false;
  bool every_step = false;  ///< as run::Picture
  run::Bound bound = run::Bound::none;
  run::When when = run::When::step;
};

/// A metric with many values per step, for layers, heads or parameters: one heat map per arm.
struct MapChart {
  std::string name;  ///< prefix of its columns in metrics.jsonl
  std::string title, caption;
  run::Per per = run::Per::layer;
};

struct Charts {
  std::vector<CurveChart> curves;
  std::vector<MapChart> maps;
};

/// Selects the metrics of run::kMetrics with a picture that some run logged.
Charts select_charts(const Study& study);

/// A row of a map, labeled by the suffix of its metric: "3" for layer 3, "3.0" for its first head.
struct MapRow {
  std::string name;
  Series values;  ///< finite values
};
/// Returns rows ordered by the numbers in their names; none if no row has a value.
std::vector<MapRow> map_rows(const run::MetricsTable& metrics, const std::string& quantity);

struct Input {
  const Study& study;
  const std::vector<LrCurve>& curves;  ///< one per arm, in the order of arms
  double lr;                           ///< the learning rate shown first; NaN: each arm's own
  Charts charts;
};

/// Returns the learning rate of the baseline's best_point, or its first one if none of its runs
/// finished; NaN if an arm with several rates lacks this one. The study must have a run.
double best_lr(const Study& study, const std::vector<LrCurve>& curves);

/// Returns the runs of an arm at its own rate (LrCurve::own).
const Condition* own_condition(const Arm& arm, const LrCurve& curve);

/// Returns the runs of an arm to show: its only ones, or those at Input::lr; null without.
const Condition* shown_condition(const Input& input, const Arm& arm);

/// Returns " at peak learning rate 3e-4" or " at each arm's own learning rate"; empty if no arm has
/// more than one.
std::string at_lr(const Input& input);

/// A dashed horizontal line of a chart, with its name.
struct Level {
  std::string name;
  double y;
};
/// Returns the levels of a chart, from values in env.json that are equal in all runs of the study.
/// A loss has `data.best_loss` in nats per token, an accuracy `data.best_accuracy`, a fraction of
/// scored targets.
std::vector<Level> levels_of(const CurveChart& chart, const Study& study);

/// Returns the training time in seconds after each logged step of the condition's longest run,
/// summed over all resumes; no points if throughput was not logged.
Series training_clock(const Condition& condition);

/// Mean, smallest and largest value at each step, over the runs with a finite value there.
struct SeedCurve {
  std::vector<double> step, mean, low, high;  ///< same length
  bool banded = false;                        ///< more than one run
};
SeedCurve seed_curve(const Condition& condition, const std::string& metric);

/// Returns about `points` points: the first, the last, and for each of equal intervals the points
/// with the lowest and highest value of mean and band, so that no peak is lost.
SeedCurve decimate(const SeedCurve& curve, std::size_t points);
Series decimate(const Series& series, std::size_t points);

/// Returns the counted spikes of each run (measures::counted_spikes) with their finite values, by
/// step.
Series seed_spikes(const Condition& condition, const std::string& metric);

std::vector<double> divergences(const Condition& condition);

/// Returns the results of the runs by task, with links to their files relative to `page_dir`, the
/// directory of the page.
std::string runs_section(std::span<const Study> studies, const std::filesystem::path& page_dir);

/// Returns loss against learning rate, and the sensitivity of each arm; empty for a single rate.
std::string lr_section(std::span<const Study> studies);

/// Returns the tested claims as a forest plot and as a table, the untested ones, folded away, and
/// notes about the verdicts.
std::string verdicts_section(const JudgedClaims& claims);

/// Keys in order with one value per arm, or an empty one. An arm whose runs differ in a key lists
/// their values.
using KeyValues = std::vector<std::pair<std::string, std::vector<std::string>>>;
/// Returns a table of the keys that differ between or within arms; the others are folded away.
std::string differences(const KeyValues& keys, std::span<const std::string> arms);

KeyValues configs(const Study& study);

/// Returns notices to read before comparing: `notes`, several tasks, unfinished runs.
std::string notices(const Study& study, std::span<const std::string> notes);

/// A section of pictures; html is empty if there are none.
struct Section {
  std::string html;
  nlohmann::ordered_json data;
};

/// Returns curves. Data: {"lrs", "lr", "arms", "conditions", "charts"}, as page/js/data.js reads
/// it.
Section curves_section(const Input& input);

/// Returns one heat map per map of the charts, with one panel per arm: its first complete run at
/// the shown learning rate. Data: heat maps.
Section layers_section(const Input& input);

/// Returns `task/accuracy/<row>/<column>` at the last validation, the mean over complete runs, with
/// one panel per arm. Data: one heat map, or none if no run logged it.
Section accuracy_section(const Input& input);

/// Returns attention maps of each arm's first seed with maps at the shown learning rate: in its
/// last layer, the head with the most attention to the first token, and head 0.
Section attention_section(const Input& input);

/// A heat map of an arm.
struct Panel {
  std::string arm;
  std::vector<std::string> columns, rows;  ///< names; the first row is at the bottom
  std::vector<double> values;              ///< (rows, columns) row-major; NaN: an empty cell
};
/// Returns heat maps on one scale, as page/js/maps.js reads them: a title and its meaning, the name
/// of a CSV file, and the labels of columns and rows.
nlohmann::ordered_json heat_map(const std::string& title, const std::string& meaning,
                                const std::string& file, const std::string& x, const std::string& y,
                                const std::vector<Panel>& panels);

/// Compares names: numbers by value, before other names.
void sort_names(std::vector<std::string>& names);

/// Rounds to six digits; null if an axis cannot represent a value.
nlohmann::ordered_json rounded(const std::vector<double>& values);

/// Returns the element in which the script draws, with a replacement text.
extern const char* const kDrawn;

}  // namespace difftape::study::page
