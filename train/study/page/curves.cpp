#include "train/study/page/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "train/study/figures/line_plot.h"
#include "train/study/page/html.h"
#include "train/study/page/seed_curve.h"

namespace difftape::study::page {

namespace {

using Json = nlohmann::ordered_json;

struct Chart {
  const char *metric, *title, *unit;
  bool log_scale;
  bool every_step;  ///< noisy, so it can be smoothed, and has spikes
  bool loss;        ///< a best achievable loss is drawn
  bool accuracy;    ///< a best achievable accuracy is drawn
};
constexpr Chart kCharts[] = {
    {"train/loss", "Training loss", "nats a token", false, true, true, false},
    {"val/loss", "Validation loss", "nats a token", false, false, true, false},
    {"optim/grad_norm", "Gradient norm", "global L2 before clipping", true, true, false, false},
    {"val/accuracy", "Validation accuracy", "share of scored targets", false, false, false, true},
    {"task/exact_match", "Exact match", "share of answers that are right in full", false, false,
     false, false}};

/// What a task allows at best, where it is known; else NaN.
double best_of(const Chart& chart, const Study& study) {
  if (chart.loss) return best_loss(study);
  return chart.accuracy ? best_accuracy(study) : std::numeric_limits<double>::quiet_NaN();
}

/// Bytes of all curves together: what keeps the page small. A number takes about 8, a step 5.
constexpr std::size_t kDataBytes = 720'000, kSvgBytes = 240'000;

bool logged(const Study& study, const char* metric) {
  for (const Arm& arm : study.arms) {
    for (const Cell& cell : arm.cells) {
      for (const RunRecord* run : cell.runs) {
        if (run->metrics.columns.contains(metric)) return true;
      }
    }
  }
  return false;
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

Json line_json(const Chart& chart, const Cell& cell, std::size_t bytes) {
  const std::size_t points = std::max<std::size_t>(20, bytes / (cell.runs.size() > 1 ? 29 : 13));
  const SeedCurve line = decimate(seed_curve(cell, chart.metric), points);
  Json json = {{"step", steps(line.step)}, {"mean", rounded(line.mean)}};
  if (line.banded) {
    json["low"] = rounded(line.low);
    json["high"] = rounded(line.high);
  }
  if (chart.every_step) {
    const Curve marks = study::decimate(seed_spikes(cell, chart.metric), points / 4);
    json["spike_step"] = steps(marks.step);
    json["spike_value"] = rounded(marks.value);
  }
  return json;
}

Json chart_json(const Chart& chart, const Study& study, std::size_t bytes) {
  Json lines = Json::array();
  for (const Arm& arm : study.arms) {
    for (const Cell& cell : arm.cells) lines.push_back(line_json(chart, cell, bytes));
  }
  return {{"title", chart.title},     {"unit", chart.unit}, {"metric", chart.metric},
          {"log", chart.log_scale},   {"loss", chart.loss}, {"every_step", chart.every_step},
          {"lines", std::move(lines)}};
}

std::size_t cell_count(const Study& study) {
  std::size_t cells = 0;
  for (const Arm& arm : study.arms) cells += arm.cells.size();
  return cells;
}

svg::LinePlot plot_of(const Chart& chart, const Input& input, std::size_t points) {
  svg::LinePlot plot{fmt::format("{}, {}{}", chart.title, chart.unit, at_rate(input)),
                     "step",
                     chart.unit,
                     chart.log_scale,
                     {},
                     "best achievable",
                     {}};
  const double best = best_of(chart, input.study);
  if (std::isfinite(best)) plot.reference = best;
  for (std::size_t arm = 0; arm < input.study.arms.size(); ++arm) {
    const Cell* cell = shown_cell(input.study.arms[arm], input.lr);
    if (!cell) continue;
    SeedCurve curve = decimate(seed_curve(*cell, chart.metric), points);
    svg::Line line{input.study.arms[arm].name, arm, curve.step, curve.mean, {}, {}, {}, {}};
    if (curve.banded) line.low = curve.low, line.high = curve.high;
    if (chart.every_step) {
      const Curve marks = study::decimate(seed_spikes(*cell, chart.metric), points / 4);
      for (std::size_t i = 0; i < marks.step.size(); ++i) {
        line.spikes.push_back({marks.step[i], marks.value[i]});
      }
    }
    line.ends = divergences(*cell);
    plot.lines.push_back(std::move(line));
  }
  return plot;
}

}  // namespace

Json curve_data(const Input& input) {
  Json data = {{"rates", Json::array()}, {"rate", 0},
               {"best_loss", nullptr},   {"best_accuracy", nullptr},
               {"arms", Json::array()},  {"cells", Json::array()},
               {"charts", Json::array()}};
  const std::vector<double> all = rates(input.study);
  for (const double rate : all) data["rates"].push_back(rate_name(rate));
  data["rate"] = std::find(all.begin(), all.end(), input.lr) - all.begin();
  if (const double best = best_loss(input.study); std::isfinite(best)) data["best_loss"] = best;
  if (const double best = best_accuracy(input.study); std::isfinite(best))
    data["best_accuracy"] = best;
  for (std::size_t arm = 0; arm < input.study.arms.size(); ++arm) {
    data["arms"].push_back(input.study.arms[arm].name);
    for (const Cell& cell : input.study.arms[arm].cells) {
      const auto rate = std::find(all.begin(), all.end(), cell.lr) - all.begin();
      data["cells"].push_back({{"arm", arm},
                               {"rate", rate},
                               {"seeds", cell.runs.size()},
                               {"diverged", steps(divergences(cell))}});
    }
  }
  // A chart of every step takes as much as it may, one of validations hardly anything.
  const std::size_t bytes = kDataBytes * 2 / (5 * cell_count(input.study));
  for (const Chart& chart : kCharts) {
    if (logged(input.study, chart.metric)) {
      data["charts"].push_back(chart_json(chart, input.study, bytes));
    }
  }
  return data;
}

std::string curve_figures(const Input& input) {
  std::string html, where = at_rate(input);
  if (!where.empty()) where = "," + where;
  const std::size_t points =
      std::clamp<std::size_t>(kSvgBytes / (60 * input.study.arms.size()), 40, 300);
  for (const Chart& chart : kCharts) {
    if (!logged(input.study, chart.metric)) continue;
    html += fmt::format(
        "<figure><figcaption>{} <span class=\"muted\">{}{}</span></figcaption>{}"
        "</figure>\n",
        chart.title, chart.unit, escape_html(where),
        line_plot(plot_of(chart, input, points)).inlined());
  }
  return html;
}

}  // namespace difftape::study::page
