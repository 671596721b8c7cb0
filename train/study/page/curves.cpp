#include "train/study/page/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "train/study/figures/drawing.h"
#include "train/study/page/frame.h"
#include "train/system/number.h"

namespace difftape::study::page {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kControls = R"(<div id="controls" hidden>
<div id="arms" role="group" aria-label="Arms"></div>
<label id="lr-label" hidden>Peak learning rate <select id="lr"></select></label>
<label id="x-label" hidden>Along the axis <select id="x"></select></label>
<label>Smoothing <select id="smoothing"><option value="0">none</option>
<option value="5">5 steps</option><option value="20">20 steps</option>
<option value="100">100 steps</option></select></label>
<button type="button" id="reset">Reset zoom</button>
</div>
)";

constexpr const char* kHint =
    "<p class=\"muted note\" id=\"hint\" hidden>Drag across a chart to zoom, double-click to zoom "
    "out; all charts zoom together.</p>\n";

constexpr const char* kCurvesNote =
    "Runs that differ only in their seed share a line: the mean over the seeds that reached a "
    "step. The band reaches from the smallest to the largest of them; it is not a confidence "
    "interval. ▼ marks a spike of one run, counted after the first 10 % of its steps as in the "
    "tables. × marks the step at which a run diverged. Long curves keep the lowest and the highest "
    "value of each interval.";

/// Limit of the bytes of all curves. A number takes about 8 bytes, a step 5.
constexpr double kDataBytes = 720'000;
/// Minimum number of points of a line, and maximum bytes of a point with its band.
constexpr double kFewestPoints = 20, kPointBytes = 29;
/// A browser needs about 3 MB per chart.
constexpr std::size_t kMostCharts = 140;

std::size_t drawn_charts(const Input& input) {
  const double each = static_cast<double>(input.study.cells().size()) * kFewestPoints * kPointBytes;
  return std::min(
      {input.charts.curves.size(), kMostCharts, static_cast<std::size_t>(kDataBytes / each)});
}

std::span<const CurveChart> drawn(const Input& input) {
  return std::span(input.charts.curves).first(drawn_charts(input));
}

double bytes_a_chart(const Input& input) {
  double weight = 0;
  for (const CurveChart& chart : drawn(input))
    weight += chart.when == run::When::validation ? 0.25 : 1;
  return kDataBytes / std::max(2.5, weight);
}

Json steps(const std::vector<double>& values) {
  Json json = Json::array();
  for (const double value : values) json.push_back(static_cast<Index>(value));
  return json;
}

/// Returns the steps and seconds between which the script interpolates.
Json clock_json(const Condition& condition) {
  constexpr std::size_t kPoints = 40;
  const Series clock = decimate(training_clock(condition), kPoints);
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
    const Series marks = decimate(seed_spikes(condition, chart.name), points / 4);
    json["spike_step"] = steps(marks.step);
    json["spike_value"] = rounded(marks.value);
  }
  return json;
}

Json chart_json(const CurveChart& chart, const Study& study, double bytes) {
  Json lines = Json::array(), levels = Json::array();
  for (const Cell& cell : study.cells()) lines.push_back(line_json(chart, cell.condition, bytes));
  for (const Level& level : levels_of(chart, study))
    levels.push_back({{"name", level.name}, {"y", level.y}});
  return {{"title", chart.title},        {"unit", chart.caption},
          {"metric", chart.name},        {"log", chart.log_scale},
          {"levels", std::move(levels)}, {"every_step", chart.every_step},
          {"lines", std::move(lines)}};
}

Json conditions_json(const Input& input) {
  const Study& study = input.study;
  Json conditions = Json::array();
  const std::vector<double> lrs = study.lrs();
  for (const auto& [arm, condition] : study.cells()) {
    conditions.push_back(
        {{"arm", &arm - study.arms.data()},
         {"lr", std::ranges::find(lrs, condition.lr) - lrs.begin()},
         {"own",
          own_condition(arm, input.curves[static_cast<std::size_t>(&arm - study.arms.data())]) ==
              &condition},
         {"seeds", condition.runs.size()},
         {"tokens", condition.runs.front()->status.tokens_per_step},
         {"clock", clock_json(condition)},
         {"diverged", steps(divergences(condition))}});
  }
  return conditions;
}

}  // namespace

const char* const kDrawn =
    "<div class=\"drawn\"></div>\n<noscript><p class=\"notice\">JavaScript draws these pictures. "
    "Their numbers are in metrics.jsonl of the runs.</p></noscript>\n";

Json rounded(const std::vector<double>& values) {
  Json json = Json::array();
  for (const double value : values) {
    const bool fits = svg::fits_axis(value);
    json.push_back(fits ? Json(std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr))
                        : Json());
  }
  return json;
}

Section curves_section(const Input& input) {
  const std::vector<double> lrs = input.study.lrs();
  Json lr_names = Json::array(), charts = Json::array();
  for (const double lr : lrs) lr_names.push_back(system::short_number(lr));
  Json conditions = conditions_json(input);
  const double bytes = bytes_a_chart(input) / static_cast<double>(conditions.size());
  for (const CurveChart& chart : drawn(input))
    charts.push_back(chart_json(chart, input.study, bytes));
  Section section{"",
                  {{"lrs", std::move(lr_names)},
                   {"lr", std::ranges::find(lrs, input.lr) - lrs.begin()},  // the end: own rates
                   {"arms", input.study.arm_names()},
                   {"conditions", std::move(conditions)},
                   {"charts", std::move(charts)}}};
  if (input.charts.curves.empty()) return section;
  section.html = std::string(kControls) + kDrawn + kHint;
  const std::size_t left_out = input.charts.curves.size() - drawn_charts(input);
  if (left_out > 0)
    section.html += notice(fmt::format("{} charts are omitted to keep this page small.", left_out));
  section.html += note(kCurvesNote);
  return section;
}

}  // namespace difftape::study::page
