#include "train/study/page/sections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/real.h"
#include "train/run/config/fields.h"
#include "train/stats/descriptive.h"
#include "train/study/compare/study.h"

namespace difftape::study::page {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kAttention = "model.attention.";

/// An arm at a learning rate, with its values of the keys that differ.
struct Point {
  std::vector<std::string> values;  ///< one per key
  double loss;                      ///< mean validation loss of the finished runs, or NaN
};

/// Returns the keys of all configurations: attention first, then the learning rate, then by name.
std::vector<std::string> candidates(const std::vector<const RunRecord*>& runs) {
  std::set<std::string> attention, others;
  for (const RunRecord* run : runs) {
    for (const auto& [key, value] : run->values()) {
      if (key == "optim.lr" || run::has_flag(key, run::kOfArm))
        (key.starts_with(kAttention) ? attention : others).insert(key);
    }
  }
  std::vector<std::string> keys;
  const std::string kind = std::string(kAttention) + "kind";
  if (attention.erase(kind) > 0) keys.push_back(kind);
  keys.insert(keys.end(), attention.begin(), attention.end());
  if (others.erase("optim.lr") > 0) keys.emplace_back("optim.lr");
  keys.insert(keys.end(), others.begin(), others.end());
  return keys;
}

/// Returns the keys that distinguish the runs, without keys that follow from earlier ones.
std::vector<std::string> grid_keys(const Study& study) {
  const std::vector<const RunRecord*> runs = study.runs();
  return distinguishing_keys(
      candidates(runs), runs.size(),
      [&](std::size_t run, const std::string& key) { return runs[run]->value(key); });
}

std::vector<Point> points_of(const Study& study, const std::vector<std::string>& keys) {
  std::vector<Point> points;
  for (const Cell& cell : study.cells()) {
    const auto value_of = [&](const auto& key) { return cell.condition.runs.front()->value(key); };
    Point point{mapped(keys, value_of), kNaN};
    std::vector<double> losses;
    for (const RunRecord* run : cell.condition.complete()) {
      const double loss = run->number("val_loss");
      if (std::isfinite(loss)) losses.push_back(loss);
    }
    if (!losses.empty()) point.loss = stats::mean(losses);
    points.push_back(std::move(point));
  }
  return points;
}

std::vector<std::string> values_of(const std::vector<Point>& points, std::size_t key) {
  std::vector<std::string> values;
  for (const Point& point : points) add_once(values, point.values[key]);
  sort_names(values);
  return values;
}

/// Returns the lowest loss at each value of two keys, over all other keys; one map per combination
/// of the keys of attention.
std::vector<Panel> panels_of(const std::vector<Point>& points, const std::vector<std::string>& keys,
                             std::size_t row, std::size_t column) {
  const std::vector<std::string> columns = values_of(points, column), rows = values_of(points, row);
  std::vector<Panel> panels;
  for (const Point& point : points) {
    std::vector<std::string> attention;
    for (std::size_t key = 0; key < keys.size(); ++key) {
      if (keys[key].starts_with(kAttention)) attention.push_back(point.values[key]);
    }
    const std::string name = fmt::format("{}", fmt::join(attention, " "));
    auto panel = std::ranges::find(panels, name, &Panel::arm);
    if (panel == panels.end()) {
      const std::vector<double> empty(rows.size() * columns.size(), kNaN);
      panel = panels.insert(panel, {name, columns, rows, empty});
    }
    const auto at = [&](const std::vector<std::string>& names, std::size_t key) {
      return static_cast<std::size_t>(std::ranges::find(names, point.values[key]) - names.begin());
    };
    double& cell = panel->values[at(rows, row) * columns.size() + at(columns, column)];
    cell = std::fmin(cell, point.loss);
  }
  return panels;
}

}  // namespace

Section grid_section(const Study& all) {
  const std::size_t task = all.arms[all.baseline].task;
  const Study study = all.of_task(task);
  const std::vector<std::string> keys = grid_keys(study);
  std::vector<std::size_t> swept;  // without keys of attention, which other sections compare
  for (std::size_t key = 0; key < keys.size(); ++key) {
    if (!keys[key].starts_with(kAttention)) swept.push_back(key);
  }
  const std::vector<Point> points = points_of(study, keys);
  if (swept.size() < 2 || points.size() < 4) return {"", Json::array()};
  const std::string& words = all.tasks[task];
  const auto plain = [&](std::size_t key) { return keys[key].substr(keys[key].find('.') + 1); };
  const std::string meaning = fmt::format(
      "{}{}{}{}", run::loss_unit(study.runs().front()->config.data.type), swept.size() > 2 ? "; the lowest over all other keys" : "",
      words.empty() ? "" : "; ", words);
  return {kDrawn,
          Json::array({heat_map("Final validation loss", meaning, "grid_map.csv", plain(swept[0]),
                                plain(swept[1]), panels_of(points, keys, swept[1], swept[0]))})};
}

}  // namespace difftape::study::page
