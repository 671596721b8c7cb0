#include "train/study/page/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "train/run/records/metric_registry.h"
#include "train/study/figures/plots.h"
#include "train/study/page/html.h"

namespace difftape::study::page {

namespace {

using Json = nlohmann::ordered_json;

using run::Bound;
using run::Metric;

/// What a task allows at best, where it is known; else NaN.
double best_of(const Metric& chart, const Study& study) {
  if (chart.picture.bound == Bound::loss) return best_loss(study);
  return chart.picture.bound == Bound::accuracy ? best_accuracy(study)
                                                : std::numeric_limits<double>::quiet_NaN();
}

/// Bytes of all curves together: what keeps the page small. A number takes about 8, a step 5.
constexpr std::size_t kDataBytes = 720'000, kSvgBytes = 240'000;

/// The metrics of the registry that have a curve and that a run of the study logged.
std::vector<const Metric*> charts(const Study& study) {
  std::vector<const Metric*> charts;
  const auto runs = study.runs();
  for (const Metric& metric : run::kMetrics) {
    const bool logged = std::any_of(runs.begin(), runs.end(), [&](const RunRecord* run) {
      return run->metrics.columns.contains(metric.name);
    });
    if (metric.per == run::Per::run && metric.picture.title != nullptr && logged)
      charts.push_back(&metric);
  }
  return charts;
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

Json line_json(const Metric& chart, const Condition& condition, std::size_t bytes) {
  const std::size_t points =
      std::max<std::size_t>(20, bytes / (condition.runs.size() > 1 ? 29 : 13));
  const SeedCurve line = decimate(seed_curve(condition, chart.name), points);
  Json json = {{"step", steps(line.step)}, {"mean", rounded(line.mean)}};
  if (line.banded) {
    json["low"] = rounded(line.low);
    json["high"] = rounded(line.high);
  }
  if (chart.picture.every_step) {
    const Series marks = study::decimate(seed_spikes(condition, chart.name), points / 4);
    json["spike_step"] = steps(marks.step);
    json["spike_value"] = rounded(marks.value);
  }
  return json;
}

Json chart_json(const Metric& chart, const Study& study, std::size_t bytes) {
  Json lines = Json::array();
  for (const Arm& arm : study.arms) {
    for (const Condition& condition : arm.conditions)
      lines.push_back(line_json(chart, condition, bytes));
  }
  return {{"title", chart.picture.title},
          {"unit", chart.picture.caption},
          {"metric", chart.name},
          {"log", chart.picture.log_scale},
          {"loss", chart.picture.bound == Bound::loss},
          {"every_step", chart.picture.every_step},
          {"lines", std::move(lines)}};
}

std::size_t condition_count(const Study& study) {
  std::size_t count = 0;
  for (const Arm& arm : study.arms) count += arm.conditions.size();
  return count;
}

svg::LinePlot plot_of(const Metric& chart, const Input& input, std::size_t points) {
  svg::LinePlot plot{
      fmt::format("{}, {}{}", chart.picture.title, chart.picture.caption, at_lr(input)),
      "step",
      chart.picture.caption,
      chart.picture.log_scale,
      {},
      "best achievable",
      {}};
  const double best = best_of(chart, input.study);
  if (std::isfinite(best)) plot.reference = best;
  for (std::size_t arm = 0; arm < input.study.arms.size(); ++arm) {
    const Condition* condition = shown_condition(input.study.arms[arm], input.lr);
    if (!condition) continue;
    SeedCurve curve = decimate(seed_curve(*condition, chart.name), points);
    svg::Line line{input.study.arms[arm].name, arm, curve.step, curve.mean, {}, {}, {}, {}};
    if (curve.banded) line.low = curve.low, line.high = curve.high;
    if (chart.picture.every_step) {
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
  Json data = {{"lrs", Json::array()},   {"lr", 0},
               {"best_loss", nullptr},   {"best_accuracy", nullptr},
               {"arms", Json::array()},  {"conditions", Json::array()},
               {"charts", Json::array()}};
  const std::vector<double> all = input.study.lrs();
  for (const double lr : all) data["lrs"].push_back(lr_name(lr));
  data["lr"] = std::find(all.begin(), all.end(), input.lr) - all.begin();
  if (const double best = best_loss(input.study); std::isfinite(best)) data["best_loss"] = best;
  if (const double best = best_accuracy(input.study); std::isfinite(best))
    data["best_accuracy"] = best;
  for (std::size_t arm = 0; arm < input.study.arms.size(); ++arm) {
    data["arms"].push_back(input.study.arms[arm].name);
    for (const Condition& condition : input.study.arms[arm].conditions) {
      const auto lr = std::find(all.begin(), all.end(), condition.lr) - all.begin();
      data["conditions"].push_back({{"arm", arm},
                                    {"lr", lr},
                                    {"seeds", condition.runs.size()},
                                    {"diverged", steps(divergences(condition))}});
    }
  }
  // A chart of every step uses its whole share, one of validations very little.
  const std::size_t bytes = kDataBytes * 2 / (5 * condition_count(input.study));
  for (const Metric* chart : charts(input.study)) {
    data["charts"].push_back(chart_json(*chart, input.study, bytes));
  }
  return data;
}

std::string curve_figures(const Input& input) {
  std::string html, where = at_lr(input);
  if (!where.empty()) where = "," + where;
  const std::size_t points =
      std::clamp<std::size_t>(kSvgBytes / (60 * input.study.arms.size()), 40, 300);
  for (const Metric* chart : charts(input.study)) {
    html += fmt::format(
        "<figure><figcaption>{} <span class=\"muted\">{}{}</span></figcaption>{}"
        "</figure>\n",
        chart->picture.title, chart->picture.caption, escape_html(where),
        line_plot(plot_of(*chart, input, points)).inlined());
  }
  return html;
}

}  // namespace difftape::study::page
