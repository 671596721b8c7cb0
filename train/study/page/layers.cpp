#include "train/study/page/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/real.h"
#include "train/run/records/metric_registry.h"

namespace difftape::study::page {

namespace {

/// Cells of all heat maps together, about 110 bytes each.
constexpr std::size_t kCells = 2400;
/// Stretches of the steps that are worth a picture.
constexpr std::size_t kFewest = 6;

/// The steps at which any row has a value, ascending.
std::vector<double> steps_of(const std::vector<MapRow>& rows) {
  std::set<double> steps;
  for (const MapRow& row : rows) steps.insert(row.values.step.begin(), row.values.step.end());
  return {steps.begin(), steps.end()};
}

/// What the rows of a quantity are.
const char* row_label(const MapChart& chart) {
  using enum run::Per;
  switch (chart.per) {
    case parameter:
      return "parameter";
    case grid:
      return "row / column";
    case head:
      return chart.one_layer ? "head" : "layer.head";
    case rank:
      return chart.one_layer ? "rank" : "layer.rank";
    default:
      return "layer";
  }
}

/// Every row in at most `columns` stretches of equally many logged steps, each the mean of what is
/// finite there.
svg::HeatMap step_map(const MapChart& chart, const std::vector<MapRow>& rows, std::size_t columns) {
  const std::vector<double> steps = steps_of(rows);
  columns = std::min(columns, steps.size());
  svg::HeatMap map{"", "step", row_label(chart), {}, {}, {}};
  for (std::size_t c = 0; c < columns; ++c) {
    map.columns.push_back(fmt::format("{:.0f}", steps[c * steps.size() / columns]));
  }
  for (const auto& [name, values] : rows) {
    map.rows.push_back(name);
    std::size_t i = 0;  // in the values of this row, which may lack steps that others have
    for (std::size_t c = 0; c < columns; ++c) {
      double sum = 0, count = 0;
      const double last = steps[(c + 1) * steps.size() / columns - 1];
      for (; i < values.step.size() && values.step[i] <= last; ++i) {
        sum += values.value[i];
        ++count;
      }
      map.values.push_back(count > 0 ? sum / count : kNaN);
    }
  }
  return map;
}

std::vector<std::pair<std::string, const RunRecord*>> shown_runs(const Input& input) {
  std::vector<std::pair<std::string, const RunRecord*>> runs;
  for (const Arm& arm : input.study.arms) {
    const Condition* condition = shown_condition(arm, input.lr);
    if (!condition) continue;
    const std::vector<const RunRecord*> complete = condition->complete();
    if (!complete.empty()) runs.emplace_back(arm.name, complete.front());
  }
  return runs;
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

/// Row and column of a metric "task/accuracy/<row>/<column>"; empty if it is none.
std::pair<std::string, std::string> grid_place(const std::string& metric) {
  static const std::string kPrefix = run::metric_of(run::metric("task/accuracy"), "");
  if (!metric.starts_with(kPrefix)) return {};
  const std::size_t slash = metric.find('/', kPrefix.size());
  if (slash == std::string::npos) return {};
  return {metric.substr(kPrefix.size(), slash - kPrefix.size()), metric.substr(slash + 1)};
}

std::string grid_metric(const std::string& row, const std::string& column) {
  return run::metric_of(run::metric("task/accuracy"), run::metric_of(row, column));
}

svg::HeatMap accuracy_map(const Condition& condition) {
  svg::HeatMap map{"", "column", "row", {}, {}, {}};
  const std::vector<const RunRecord*> runs = condition.complete();
  for (const RunRecord* run : runs) {
    for (const auto& [name, values] : run->metrics.columns) {
      const auto [row, column] = grid_place(name);
      if (row.empty()) continue;
      add_once(map.rows, row);
      add_once(map.columns, column);
    }
  }
  sort_names(map.rows);
  sort_names(map.columns);
  for (const std::string& row : map.rows) {
    for (const std::string& column : map.columns) {
      double sum = 0, count = 0;
      for (const RunRecord* run : runs) {
        const Series accuracy = curve(run->metrics, grid_metric(row, column));
        if (!accuracy.value.empty()) sum += accuracy.value.back(), ++count;
      }
      map.values.push_back(count > 0 ? sum / count : kNaN);
    }
  }
  return map;
}

}  // namespace

std::string layer_figures(const Input& input) {
  std::vector<std::pair<std::string, const RunRecord*>> runs;
  std::size_t rows = 1, left_out = 0;
  for (const auto& shown : shown_runs(input)) {
    std::size_t more = 0;
    for (const MapChart& chart : input.charts.maps) {
      more += map_rows(shown.second->metrics, chart.name).size();
    }
    if ((rows + more) * kFewest > kCells && !runs.empty()) {
      ++left_out;
      continue;
    }
    rows += more;
    runs.push_back(shown);
  }
  const std::size_t columns = std::clamp<std::size_t>(kCells / rows, kFewest, 40);
  std::string html;
  for (const MapChart& chart : input.charts.maps) {
    std::vector<Panel> panels;
    for (const auto& [arm, run] : runs) {
      const std::vector<MapRow> found = map_rows(run->metrics, chart.name);
      if (!found.empty()) panels.push_back({arm, step_map(chart, found, columns)});
    }
    if (panels.empty()) continue;
    std::string file = chart.name;
    std::replace(file.begin(), file.end(), '/', '_');
    const svg::Scale scale = scale_of(panels);
    html += map_figure(chart.title, chart.caption, file + ".csv", std::move(panels), scale);
  }
  if (left_out > 0 && !html.empty()) {
    html += fmt::format("<p class=\"notice\">Not drawn, to keep this page small: {} arms.</p>\n",
                        left_out);
  }
  return html;
}

std::string accuracy_figure(const Input& input) {
  std::vector<Panel> panels;
  for (const Arm& arm : input.study.arms) {
    const Condition* condition = shown_condition(arm, input.lr);
    if (!condition) continue;
    svg::HeatMap map = accuracy_map(*condition);
    if (!map.rows.empty()) panels.push_back({arm.name, std::move(map)});
  }
  if (panels.empty()) return "";
  return map_figure("Accuracy", "share of answers that are right, at the last validation",
                    "accuracy.csv", std::move(panels), {{0, 1}, false});
}

}  // namespace difftape::study::page
