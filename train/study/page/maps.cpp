#include "train/study/page/sections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <tuple>

#include "train/study/page/html.h"
#include "train/system/text_table.h"

namespace difftape::study::page {

namespace {

std::string csv_of(const std::vector<Panel>& panels, const char* row, const char* column) {
  std::string csv = system::csv_line(std::vector<std::string>{"arm", row, column, "value"});
  for (const auto& [arm, map] : panels) {
    for (std::size_t r = 0; r < map.rows.size(); ++r) {
      for (std::size_t c = 0; c < map.columns.size(); ++c) {
        const double value = map.values[r * map.columns.size() + c];
        if (std::isnan(value)) continue;
        csv += system::csv_line(std::vector<std::string>{arm, map.rows[r], map.columns[c],
                                                         fmt::format("{:.6g}", value)});
      }
    }
  }
  return csv;
}

/// "0 everywhere: softmax, diff_v2. " for the panels of one number, a line that says as much as a
/// field of one colour.
std::string constants(const std::vector<Panel>& panels) {
  std::map<double, std::vector<std::string>> arms;
  for (const auto& [arm, map] : panels) {
    if (!std::isnan(map.constant())) arms[map.constant()].push_back(arm);
  }
  std::string text;
  for (const auto& [value, names] : arms) {
    text += fmt::format("<p class=\"constant\">{} everywhere: {}</p>\n", svg::short_number(value),
                        escape_html(fmt::to_string(fmt::join(names, ", "))));
  }
  return text;
}

}  // namespace

svg::Scale scale_of(const std::vector<Panel>& panels) {
  svg::Range range;
  for (const Panel& panel : panels) {
    for (const double value : panel.map.values) range.add(value);
  }
  return svg::Scale::of(range);
}

/// Numbers by size, other names after them.
void sort_names(std::vector<std::string>& names) {
  const auto place = [](const std::string& name) {
    double value = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
    const bool number = error == std::errc() && end == name.data() + name.size();
    return number && std::isfinite(value) ? std::tuple(0, value, name) : std::tuple(1, 0.0, name);
  };
  std::ranges::sort(names, {}, place);
}

std::string map_figure(const std::string& title, const std::string& meaning,
                       const std::string& file, std::vector<Panel> panels,
                       const svg::Scale& scale) {
  std::string maps;
  for (auto& [arm, map] : panels) {
    if (!std::isnan(map.constant())) continue;
    map.label = title + ", " + arm;
    maps += fmt::format("<div><p class=\"arm\">{}</p>{}</div>\n", escape_html(arm),
                        heat_map(map, scale).inlined());
  }
  const std::string bar =
      maps.empty() ? ""
                   : fmt::format("<span class=\"bar\">{}{}</span> ", color_bar(scale).inlined(),
                                 scale.log ? "<span class=\"muted\">log</span>" : "");
  return fmt::format(
      "<figure class=\"heat\"><figcaption>{} <span class=\"muted\">{}</span> {}{}</figcaption>\n{}"
      "<div class=\"panels\">\n{}</div></figure>\n",
      escape_html(title), escape_html(meaning), bar,
      csv_link(file, csv_of(panels, panels.front().map.y_label.c_str(),
                            panels.front().map.x_label.c_str())),
      constants(panels), maps);
}

}  // namespace difftape::study::page
