#include "train/study/page/sections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "core/error.h"
#include "train/system/suggest.h"

namespace difftape::study::page {

namespace {

using run::Metric;
using run::Per;

/// All names that runs of the study logged, with a value or a list.
struct Logged {
  std::set<std::string> numbers, lists;

  explicit Logged(const Study& study) {
    for (const RunRecord* run : study.runs()) {
      for (const auto& [name, column] : run->metrics.columns) numbers.insert(name);
      for (const auto& [name, column] : run->metrics.lists) lists.insert(name);
    }
  }
  /// Returns whether a name begins with `name` and a slash.
  static bool has_part(const std::set<std::string>& names, const std::string& name) {
    const auto first = names.lower_bound(name + "/");
    return first != names.end() && first->starts_with(name + "/");
  }
  bool has(const std::string& name) const { return numbers.contains(name) || lists.contains(name); }
  bool has_parts(const std::string& name) const {
    return has_part(numbers, name) || has_part(lists, name);
  }
};

/// Returns "Context RMS", or the name of a metric without a picture, followed by its part.
std::string title_of(const Metric& metric, const std::string& name) {
  const char* title = metric.picture.title == nullptr ? metric.name : metric.picture.title;
  const std::string part = name.substr(std::string_view(metric.name).size());
  if (part.empty()) return title;
  const bool layer = metric.per == Per::layer || metric.per == Per::head ||
                     metric.per == Per::expert || metric.per == Per::rank;
  return fmt::format("{}, {}{}", title, layer ? "layer " : "", part.substr(1));
}

std::string caption_of(const Metric& metric) {
  if (metric.picture.title != nullptr) return metric.picture.caption;
  const std::string unit = metric.unit == std::string_view("1") ? "" : metric.unit;
  return fmt::format("{}{}{}", unit, unit.empty() ? "" : ": ", metric.what);
}

void add(Charts& charts, const Metric& metric, const std::string& name, bool is_map) {
  const run::Picture& picture = metric.picture;
  if (is_map) {
    charts.maps.push_back(
        {name, title_of(metric, name), caption_of(metric), metric.per, name != metric.name});
  } else {
    charts.curves.push_back({name, title_of(metric, name), caption_of(metric), picture.log_scale,
                             picture.every_step, picture.bound, metric.when});
  }
}

/// Returns the registered metric of a logged name; null if there is none.
const Metric* metric_of(const std::string& name, bool list) {
  const Metric* found = nullptr;
  for (const Metric& metric : run::kMetrics) {
    if (run::is_list(metric.per) != list || !run::has_parts(metric.per)) continue;
    if (name.starts_with(std::string(metric.name) + "/")) found = &metric;
  }
  return found;
}

void note_silence(Charts& charts, const std::string& name) {
  charts.notes.push_back(fmt::format("not drawn: no run logged {}", name));
}

/// Adds the registered metric of this name as far as it was logged. Returns false if there is none.
bool add_registered(Charts& charts, const Logged& logged, const std::string& name) {
  bool known = false, drawn = false;
  for (const Metric& metric : run::kMetrics) {
    if (metric.name != name) continue;
    known = true;
    const bool there = run::has_parts(metric.per) ? logged.has_parts(name) : logged.has(name);
    drawn = drawn || there;
    if (there) add(charts, metric, name, metric.per != Per::run);
  }
  if (known && !drawn) note_silence(charts, name);
  return known;
}

/// Adds a name of metrics.jsonl, or one that may be logged later. Returns false for other names.
bool add_logged(Charts& charts, const Logged& logged, const std::string& name) {
  const bool list = logged.lists.contains(name);
  if (!list && !logged.numbers.contains(name)) {
    const bool later = metric_of(name, false) != nullptr || metric_of(name, true) != nullptr;
    if (later) note_silence(charts, name);
    return later;
  }
  const Metric* metric = metric_of(name, list);
  const Metric unknown{name.c_str(), "1", "as logged"};  // metric of another version
  add(charts, metric == nullptr ? unknown : *metric, name, list);
  return true;
}

[[noreturn]] void refuse(const Logged& logged, const std::string& name) {
  std::set<std::string> registered;
  for (const Metric& metric : run::kMetrics) registered.insert(metric.name);
  std::vector<std::string> names(registered.begin(), registered.end());
  const std::string near = system::did_you_mean(name, names);
  names.insert(names.end(), logged.numbers.begin(), logged.numbers.end());
  names.insert(names.end(), logged.lists.begin(), logged.lists.end());
  const std::string hint = near.empty() ? system::did_you_mean(name, names) : near;
  throw UsageError(fmt::format(
      "report --charts: '{}' is not a metric{}", name,
      hint.empty()
          ? fmt::format("; give a name of metrics.jsonl, or one of {}", fmt::join(registered, ", "))
          : hint));
}

/// Orders numbers within names by value: "2.9" before "2.11" before "10.0".
bool is_before(std::string_view a, std::string_view b) {
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    int x = 0, y = 0;
    const auto [x_end, x_error] = std::from_chars(a.data() + i, a.data() + a.size(), x);
    const auto [y_end, y_error] = std::from_chars(b.data() + j, b.data() + b.size(), y);
    const bool numbers = x_error == std::errc() && y_error == std::errc();
    if (numbers && x != y) return x < y;
    if (!numbers && a[i] != b[j]) return a[i] < b[j];
    i = numbers ? static_cast<std::size_t>(x_end - a.data()) : i + 1;
    j = numbers ? static_cast<std::size_t>(y_end - b.data()) : j + 1;
  }
  return a.size() - i < b.size() - j;
}

/// Adds one row per entry of a list. `part` is the layer; "" if the list has the name itself.
void add_entries(std::vector<MapRow>& rows, const run::MetricsTable& metrics,
                 const run::Column<std::vector<double>>& column, const std::string& part) {
  const std::vector<std::vector<double>>& lists = column.values();
  std::size_t entries = 0;
  for (const auto& list : lists) entries = std::max(entries, list.size());
  for (std::size_t entry = 0; entry < entries; ++entry) {
    MapRow& row =
        rows.emplace_back(MapRow{fmt::format("{}{}{}", part, part.empty() ? "" : ".", entry), {}});
    for (std::size_t i = 0; i < lists.size(); ++i) {
      if (entry >= lists[i].size() || !std::isfinite(lists[i][entry])) continue;
      row.values.step.push_back(metrics.step[column.row(i)]);
      row.values.value.push_back(lists[i][entry]);
    }
  }
}

}  // namespace

Charts select_charts(const Study& study, std::span<const std::string> names) {
  const Logged logged(study);
  Charts charts;
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) continue;
    if (!add_registered(charts, logged, name) && !add_logged(charts, logged, name))
      refuse(logged, name);
  }
  if (!names.empty()) return charts;
  for (const Metric& metric : run::kMetrics) {
    if (metric.picture.title == nullptr) continue;
    const bool is_curve = metric.per == Per::run && logged.numbers.contains(metric.name);
    const bool is_map = metric.per == Per::layer || metric.per == Per::expert;
    if (is_curve || is_map) add(charts, metric, metric.name, is_map);
  }
  return charts;
}

std::vector<MapRow> map_rows(const run::MetricsTable& metrics, const std::string& quantity) {
  const std::string parts = quantity + "/";
  std::vector<MapRow> rows;
  for (auto column = metrics.columns.lower_bound(parts);
       column != metrics.columns.end() && column->first.starts_with(parts); ++column) {
    rows.push_back({column->first.substr(parts.size()), curve(metrics, column->first)});
  }
  for (const auto& [name, lists] : metrics.lists) {
    if (name == quantity) add_entries(rows, metrics, lists, "");
    if (name.starts_with(parts)) add_entries(rows, metrics, lists, name.substr(parts.size()));
  }
  std::ranges::sort(rows, is_before, &MapRow::name);
  const bool any =
      std::ranges::any_of(rows, [](const MapRow& row) { return !row.values.step.empty(); });
  return any ? rows : std::vector<MapRow>();
}

}  // namespace difftape::study::page
