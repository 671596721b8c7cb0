#include "train/study/page/sections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "train/study/compare/tables.h"

namespace difftape::study::page {

namespace {

/// Names that runs of the study logged as numbers.
std::set<std::string> logged_numbers(const Study& study) {
  std::set<std::string> names;
  for (const Row* run : study.runs())
    for (const auto& [name, column] : run->curves().metrics.columns) names.insert(name);
  return names;
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

}  // namespace

Charts select_charts(const Study& study) {
  const std::set<std::string> logged = logged_numbers(study);
  Charts charts;
  for (const run::Metric& metric : run::kMetrics) {
    const run::Picture& picture = metric.picture;
    if (picture.title == nullptr) continue;
    const std::string caption = with_loss_unit(study, picture.caption);
    if (metric.per == run::Per::run && logged.contains(metric.name)) {
      charts.curves.push_back({metric.name, picture.title, caption, picture.log_scale,
                               picture.every_step, picture.bound, metric.when});
    } else if (metric.per == run::Per::layer || metric.per == run::Per::expert) {
      charts.maps.push_back({metric.name, picture.title, caption, metric.per});
    }
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
  std::ranges::sort(rows, is_before, &MapRow::name);
  const bool any =
      std::ranges::any_of(rows, [](const MapRow& row) { return !row.values.step.empty(); });
  return any ? rows : std::vector<MapRow>();
}

}  // namespace difftape::study::page
