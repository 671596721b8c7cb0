#pragma once
// The sections of the page, each in the source of its name:
//   runs        tables of them, and what they reach at each learning rate
//   verdicts    on claims
//   settings    how the runs were made: configurations, commands, environments
// and those whose pictures the script draws from data:
//   curves      metrics over the steps
//   grid        the loss over two or more keys that were varied, as heat maps
//   maps        metrics of each layer over the steps, and accuracy by difficulty of a task
//   attention   maps of selected heads, from metrics.h5

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

/// What the runs reached, with links to the files of each as seen from `page_dir`, the directory of
/// the page.
std::string runs_section(const Study& study, const std::filesystem::path& page_dir);

/// Loss against learning rate, and how sensitive each arm is to it. Empty without several rates.
std::string lr_section(const Study& study, const std::vector<LrCurve>& curves);

/// The claims that were tested, as a forest plot and as a table, then the others, folded away, and
/// what is to know about the verdicts.
std::string verdicts_section(const JudgedClaims& claims);

/// Keys with one value an arm (empty: the arm has none), in order. An arm whose runs differ in a
/// key lists their values.
using KeyValues = std::vector<std::pair<std::string, std::vector<std::string>>>;
/// The keys that differ between the arms, or within one, as a table; the others folded away below.
std::string differences(const KeyValues& keys, std::span<const std::string> arms);

KeyValues configs(const Study& study);
KeyValues environments(const Study& study);

std::string commands(const Study& study);

/// What a reader should know before comparing: `notes`, several tasks, how many runs are not
/// finished.
std::string notices(const Study& study, std::span<const std::string> notes);

/// A section of pictures: html is empty if there are none.
struct Section {
  std::string html;
  nlohmann::ordered_json data;
};

/// Data: {"lrs", "lr", "arms", "conditions", "charts"}, as page/js/data.js reads them.
Section curves_section(const Input& input);

/// The final loss in the baseline's task over two keys beside those of attention, if at least two
/// vary. Data: heat maps.
Section grid_section(const Study& all);

/// A heat map a map of the charts, a panel an arm in it, of the first complete run at the shown
/// learning rate. Data: heat maps.
Section layers_section(const Input& input);

/// `task/accuracy/<row>/<column>` at the last validation, the mean over complete runs, a panel an
/// arm. Data: one heat map, or none if no run logged it.
Section accuracy_section(const Input& input);

/// Of each arm, at the shown learning rate, the first seed that has maps: in its last layer the
/// head that attends to the first token most, and head 0.
Section attention_section(const Input& input);

/// A heat map of an arm.
struct Panel {
  std::string arm;
  std::vector<std::string> columns, rows;  ///< names; the first row is at the bottom
  std::vector<double> values;              ///< (rows, columns) row-major; NaN: an empty cell
};
/// Heat maps on one scale, as page/js/maps.js reads them: a title and its meaning, the name of a
/// CSV file, what columns and rows are.
nlohmann::ordered_json heat_map(const std::string& title, const std::string& meaning,
                                const std::string& file, const std::string& x, const std::string& y,
                                const std::vector<Panel>& panels);

/// Numbers by size, other names after them.
void sort_names(std::vector<std::string>& names);

/// With six digits, which are more than a screen shows; null where an axis cannot hold it.
nlohmann::ordered_json rounded(const std::vector<double>& values);

/// Where the script draws, and what stands there without it.
extern const char* const kDrawn;

}  // namespace difftape::study::page
