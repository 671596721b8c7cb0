#pragma once
// Which logged quantities a page draws, and how: those of the registry of metrics that have a
// picture, or those that are asked for by name.

#include <span>
#include <string>
#include <vector>

#include "train/run/records/metric_registry.h"
#include "train/study/compare/curves.h"

namespace difftape::study::page {

/// A quantity of one value a step: a curve an arm.
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

}  // namespace difftape::study::page
