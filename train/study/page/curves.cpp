#include "train/study/page/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "train/study/figures/plots.h"
#include "train/study/page/html.h"

namespace difftape::study::page {

namespace {

using Json = nlohmann::ordered_json;

/// Bytes of all curves together: what keeps the page small. A number takes about 8, a step 5.
constexpr double kDataBytes = 720'000, kSvgBytes = 600'000;
/// The points that a line has at least, and what one of them with its band takes at most.
constexpr double kFewestPoints = 20, kPointBytes = 29;
/// What a chart takes besides its lines: axes, names, its frame.
constexpr double kFrameBytes = 4'500;

/// As many charts as there is room for.
std::size_t drawn_charts(const Input& input) {
  std::size_t lines = 0;
  for (const Arm& arm : input.study.arms) lines += arm.conditions.size();
  const double each = static_cast<double>(lines) * kFewestPoints * kPointBytes + kFrameBytes;
  return std::min(input.charts.curves.size(), static_cast<std::size_t>(kDataBytes / each));
}

std::span<const CurveChart> drawn(const Input& input) {
  return std::span(input.charts.curves).first(drawn_charts(input));
}

/// The bytes of a chart; one of validations uses very little.
double bytes_a_chart(const Input& input, double all) {
  double weight = 0;
  for (const CurveChart& chart : drawn(input))
    weight += chart.when == run::When::validation ? 0.25 : 1;
  return all / std::max(2.5, weight);
}

/// Six digits are more than a screen shows.
Json rounded(const std::vector<double>& values) {
  Json json = Json::array();
  for (const double value : values) {
    json.push_back(std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr));
  }
  return json;
}

Json steps(const std::vector<double>& values) {
  Json json = Json::array();
  for (const double value : values) json.push_back(static_cast<Index>(value));
  return json;
}

/// The steps and seconds between which the script interpolates.
Json clock_json(const Condition& condition) {
  constexpr std::size_t kPoints = 40;
  const Series clock = study::decimate(training_clock(condition), kPoints);
  return {{"step", steps(clock.step)}, {"seconds", rounded(clock.value)}};
}

Json line_json(const CurveChart& chart, const Condition& condition, double bytes) {
  const auto points = static_cast<std::size_t>(
      std::max(kFewestPoints, bytes / (condition.runs.size() > 1 ? kPointBytes : 13)));
  const SeedCurve line = decimate(seed_curve(condition, chart.name), points);
  Json json = {{"step", steps(line.step)}, {"mean", rounded(line.mean)}};
  if (line.banded) {
    json["low"] = rounded(line.low);
    json["high"] = rounded(line.high);
  }
  if (chart.every_step) {
    const Series marks = study::decimate(seed_spikes(condition, chart.name), points / 4);
    json["spike_step"] = steps(marks.step);
    json["spike_value"] = rounded(marks.value);
  }
  return json;
}

Json chart_json(const CurveChart& chart, const Study& study, double bytes) {
  Json lines = Json::array();
  for (const Arm& arm : study.arms) {
    for (const Condition& condition : arm.conditions)
      lines.push_back(line_json(chart, condition, bytes));
  }
  Json levels = Json::array();
  for (const svg::Level& level : levels_of(chart, study)) {
    levels.push_back({{"name", level.name}, {"y", level.y}});
  }
  return {{"title", chart.title},        {"unit", chart.caption},
          {"metric", chart.name},        {"log", chart.log_scale},
          {"levels", std::move(levels)}, {"every_step", chart.every_step},
          {"lines", std::move(lines)}};
}

svg::LinePlot plot_of(const CurveChart& chart, const Input& input, std::size_t points) {
  svg::LinePlot plot{fmt::format("{}, {}{}", chart.title, chart.caption, at_lr(input)),
                     "step",
                     chart.caption,
                     chart.log_scale,
                     levels_of(chart, input.study),
                     {}};
  for (std::size_t arm = 0; arm < input.study.arms.size(); ++arm) {
    const Condition* condition = shown_condition(input.study.arms[arm], input.lr);
    if (!condition) continue;
    SeedCurve curve = decimate(seed_curve(*condition, chart.name), points);
    svg::Line line{input.study.arms[arm].name, arm, curve.step, curve.mean, {}, {}, {}, {}};
    if (curve.banded) line.low = curve.low, line.high = curve.high;
    if (chart.every_step) {
      const Series marks = study::decimate(seed_spikes(*condition, chart.name), points / 4);
      for (std::size_t i = 0; i < marks.step.size(); ++i) {
        line.spikes.push_back({marks.step[i], marks.value[i]});
      }
    }
    line.ends = divergences(*condition);
    plot.lines.push_back(std::move(line));
  }
  return plot;
}

}  // namespace

Json curve_data(const Input& input) {
  Json data = {{"lrs", Json::array()},
               {"lr", 0},
               {"arms", Json::array()},
               {"conditions", Json::array()},
               {"charts", Json::array()}};
  const std::vector<double> all = input.study.lrs();
  std::size_t conditions = 0;
  for (const double lr : all) data["lrs"].push_back(lr_name(lr));
  data["lr"] = std::find(all.begin(), all.end(), input.lr) - all.begin();
  for (std::size_t arm = 0; arm < input.study.arms.size(); ++arm) {
    data["arms"].push_back(input.study.arms[arm].name);
    conditions += input.study.arms[arm].conditions.size();
    for (const Condition& condition : input.study.arms[arm].conditions) {
      const auto lr = std::find(all.begin(), all.end(), condition.lr) - all.begin();
      data["conditions"].push_back({{"arm", arm},
                                    {"lr", lr},
                                    {"seeds", condition.runs.size()},
                                    {"tokens", condition.runs.front()->status.tokens_per_step},
                                    {"clock", clock_json(condition)},
                                    {"diverged", steps(divergences(condition))}});
    }
  }
  const double bytes = bytes_a_chart(input, kDataBytes) / static_cast<double>(conditions);
  for (const CurveChart& chart : drawn(input)) {
    data["charts"].push_back(chart_json(chart, input.study, bytes));
  }
  return data;
}

std::string curve_figures(const Input& input) {
  std::string html = "<div class=\"static\">\n", where = at_lr(input);
  if (!where.empty()) where = "," + where;
  const double arms = static_cast<double>(input.study.arms.size());
  const auto points = static_cast<std::size_t>(
      std::clamp(bytes_a_chart(input, kSvgBytes) / (60 * arms), kFewestPoints, 300.0));
  for (const CurveChart& chart : drawn(input)) {
    html += fmt::format(
        "<figure><figcaption>{} <span class=\"muted\">{}{}</span></figcaption>{}"
        "</figure>\n",
        escape_html(chart.title), escape_html(chart.caption), escape_html(where),
        line_plot(plot_of(chart, input, points)).inlined());
  }
  html += "</div>\n";
  const std::size_t left_out = input.charts.curves.size() - drawn_charts(input);
  if (left_out > 0) {
    html += fmt::format("<p class=\"notice\">Not drawn, to keep this page small: {} charts.</p>\n",
                        left_out);
  }
  return html;
}

}  // namespace difftape::study::page
