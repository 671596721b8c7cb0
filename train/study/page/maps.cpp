#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "core/real.h"
#include "train/run/records/metric_registry.h"
#include "train/study/page/frame.h"
#include "train/study/page/sections.h"
#include "train/system/number.h"

namespace difftape::study::page {

namespace {

using Json = nlohmann::ordered_json;

/// Maximum number of cells of all heat maps, about 8 bytes each.
constexpr std::size_t kCells = 12'000;
/// Minimum number of intervals of steps for a picture.
constexpr std::size_t kFewest = 6;

std::vector<double> steps_of(const std::vector<MapRow>& rows) {
  std::set<double> steps;
  for (const MapRow& row : rows) steps.insert(row.values.step.begin(), row.values.step.end());
  return {steps.begin(), steps.end()};
}

const char* row_label(const MapChart& chart) {
  return chart.per == run::Per::expert ? "layer/expert" : "layer";
}

/// Returns rows of at most `columns` intervals of equally many logged steps; a cell is the mean of
/// its finite values.
Panel step_map(const std::string& arm, const std::vector<MapRow>& rows, std::size_t columns) {
  const std::vector<double> steps = steps_of(rows);
  columns = std::min(columns, steps.size());
  Panel map{arm, {}, {}, {}};
  for (std::size_t c = 0; c < columns; ++c) {
    map.columns.push_back(fmt::format("{:.0f}", steps[c * steps.size() / columns]));
  }
  for (const auto& [name, values] : rows) {
    map.rows.push_back(name);
    std::size_t i = 0;  // index in this row, which may lack steps that others have
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

std::vector<std::pair<std::string, const Row*>> shown_runs(const Input& input) {
  std::vector<std::pair<std::string, const Row*>> runs;
  for (const Arm& arm : input.study.arms) {
    const Condition* condition = shown_condition(input, arm);
    if (!condition) continue;
    const std::vector<const Row*> complete = condition->complete();
    if (!complete.empty()) runs.emplace_back(arm.name, complete.front());
  }
  return runs;
}

/// Returns row and column of a metric "task/accuracy/<row>/<column>"; empty for other names.
std::pair<std::string, std::string> grid_place(const std::string& metric) {
  static const std::string kPrefix = run::metric_of(run::metric("task/accuracy"), "");
  if (!metric.starts_with(kPrefix)) return {};
  const std::size_t slash = metric.find('/', kPrefix.size());
  if (slash == std::string::npos) return {};
  return {metric.substr(kPrefix.size(), slash - kPrefix.size()), metric.substr(slash + 1)};
}

Panel accuracy_map(const Arm& arm, const Condition& condition) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> found;
  std::set<std::string> rows, columns;
  for (const Row* run : condition.complete()) {
    for (const auto& [name, values] : run->curves().metrics.columns) {
      const auto place = grid_place(name);
      if (place.first.empty()) continue;
      rows.insert(place.first);
      columns.insert(place.second);
      const Series accuracy = curve(run->curves().metrics, name);
      if (!accuracy.value.empty()) found[place].push_back(accuracy.value.back());
    }
  }
  Panel map{arm.name, {columns.begin(), columns.end()}, {rows.begin(), rows.end()}, {}};
  sort_names(map.rows);
  sort_names(map.columns);
  for (const std::string& row : map.rows) {
    for (const std::string& column : map.columns)
      map.values.push_back(stats::mean(found[{row, column}]));
  }
  return map;
}

}  // namespace

Json heat_map(const std::string& title, const std::string& meaning, const std::string& file,
              const std::string& x, const std::string& y, const std::vector<Panel>& panels) {
  Json map = {{"title", title}, {"meaning", meaning},     {"file", file}, {"x", x},
              {"y", y},         {"panels", Json::array()}};
  for (const Panel& panel : panels) {
    map["panels"].push_back({{"arm", panel.arm},
                             {"columns", panel.columns},
                             {"rows", panel.rows},
                             {"values", rounded(panel.values)}});
  }
  return map;
}

void sort_names(std::vector<std::string>& names) {
  const auto place = [](const std::string& name) {
    const std::optional<double> value = system::read_number<double>(name);
    return value && std::isfinite(*value) ? std::tuple(0, *value, name) : std::tuple(1, 0.0, name);
  };
  std::ranges::sort(names, {}, place);
}

Section layers_section(const Input& input) {
  std::vector<std::pair<std::string, const Row*>> runs;
  std::size_t rows = 1, left_out = 0;
  for (const auto& shown : shown_runs(input)) {
    std::size_t more = 0;
    for (const MapChart& chart : input.charts.maps) {
      more += map_rows(shown.second->curves().metrics, chart.name).size();
    }
    if ((rows + more) * kFewest > kCells && !runs.empty()) {
      ++left_out;
      continue;
    }
    rows += more;
    runs.push_back(shown);
  }
  const std::size_t columns = std::clamp<std::size_t>(kCells / rows, kFewest, 40);
  Json maps = Json::array();
  for (const MapChart& chart : input.charts.maps) {
    std::vector<Panel> panels;
    for (const auto& [arm, run] : runs) {
      const std::vector<MapRow> found = map_rows(run->curves().metrics, chart.name);
      if (!found.empty()) panels.push_back(step_map(arm, found, columns));
    }
    if (panels.empty()) continue;
    std::string file = chart.name + ".csv";
    std::ranges::replace(file, '/', '_');
    maps.push_back(heat_map(chart.title, chart.caption, file, "step", row_label(chart), panels));
  }
  if (maps.empty()) return {"", maps};
  std::string html = kDrawn;
  if (left_out > 0)
    html += notice(fmt::format("{} arms are omitted to keep this page small.", left_out));
  return {
      html + note(fmt::format("The first complete run of each arm{}. A cell is the mean over an "
                              "interval of logged steps; its tooltip shows the number.",
                              escape_html(at_lr(input)))),
      maps};
}

Section accuracy_section(const Input& input) {
  std::vector<Panel> panels;
  for (const Arm& arm : input.study.arms) {
    const Condition* condition = shown_condition(input, arm);
    if (!condition) continue;
    Panel map = accuracy_map(arm, *condition);
    if (!map.rows.empty()) panels.push_back(std::move(map));
  }
  if (panels.empty()) return {"", Json::array()};
  Json map = heat_map("Accuracy", "fraction of correct answers at the last validation",
                      "accuracy.csv", "column", "row", panels);
  map["range"] = {0, 1};
  return {kDrawn, Json::array({std::move(map)})};
}

}  // namespace difftape::study::page
