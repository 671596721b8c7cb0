#include "train/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/error.h"
#include "train/log/files.h"
#include "train/report/assets.h"
#include "train/report/html.h"
#include "train/report/summary.h"
#include "train/report/table.h"

namespace difftape {

namespace {

using Json = nlohmann::ordered_json;

struct Chart {
  const char *metric, *title, *unit;
  bool log_scale;
  bool every_step;  ///< noisy, so it can be smoothed, and has spikes
};
constexpr Chart kCharts[] = {
    {"train/loss", "Training loss", "nats per token", false, true},
    {"val/loss", "Validation loss", "nats per token", false, false},
    {"optim/grad_norm", "Gradient norm", "global L2 before clipping, log scale", true, true}};

/// Entries of a list, such as the files of a text, that are shown.
constexpr std::ptrdiff_t kListed = 3;

/// Points of all curves together, about 15 bytes each: what keeps the page small.
constexpr std::size_t kPoints = 80000;

/// Six digits are more than a screen shows.
Json rounded(const std::vector<double>& values) {
  Json json = Json::array();
  for (const double value : values)
    json.push_back(std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr));
  return json;
}

Json steps(const std::vector<double>& values) {
  Json json = Json::array();
  for (const double value : values) json.push_back(static_cast<Index>(value));
  return json;
}

Json chart_json(const Chart& chart, std::span<const RunRecord> runs) {
  // A curve gets one share of the points and its spikes half of one.
  const std::size_t share =
      std::clamp<std::size_t>(2 * kPoints / (3 * runs.size() * std::size(kCharts)), 20, 2000);
  Json curves = Json::array();
  for (const RunRecord& run : runs) {
    const Curve all = curve(run.metrics, chart.metric);
    const Curve drawn = decimate(all, share);
    Json json = {{"step", steps(drawn.step)}, {"value", rounded(drawn.value)}};
    if (chart.every_step) {
      const Curve marked = decimate(spikes(all, spike_rule(run.env)), share / 2);
      json["spike_step"] = steps(marked.step);
      json["spike_value"] = rounded(marked.value);
    }
    curves.push_back(std::move(json));
  }
  return {{"title", chart.title},           {"unit", chart.unit},
          {"metric", chart.metric},         {"log", chart.log_scale},
          {"every_step", chart.every_step}, {"curves", std::move(curves)}};
}

Json page_data(std::span<const RunRecord> runs) {
  Json data = {{"runs", Json::array()}, {"charts", Json::array()}};
  for (const RunRecord& run : runs) {
    const auto& diverged = run.summary.status.diverged;
    data["runs"].push_back({{"name", run.summary.name},
                            {"diverged", diverged ? Json(diverged->step) : Json(nullptr)}});
  }
  for (const Chart& chart : kCharts) data["charts"].push_back(chart_json(chart, runs));
  return data;
}

/// The values of flat JSON objects, one a run, side by side in order of first appearance.
KeyValues side_by_side(const std::vector<Json>& objects) {
  KeyValues keys;
  for (std::size_t run = 0; run < objects.size(); ++run) {
    for (const auto& [key, value] : objects[run].items()) {
      auto row = std::find_if(keys.begin(), keys.end(), [&](auto& k) { return k.first == key; });
      if (row == keys.end())
        row = keys.insert(row, {key, std::vector<std::string>(objects.size())});
      row->second[run] = value.is_string() ? value.get<std::string>() : value.dump();
    }
  }
  return keys;
}

std::vector<Json> configs(std::span<const RunRecord> runs) {
  std::vector<Json> result;
  for (const RunRecord& run : runs) {
    result.push_back(run.env["config"]);
    for (const char* own : {"run.name", "run.out"}) result.back().erase(own);
  }
  return result;
}

/// Flattens objects to keys like "build/version"; of a list it keeps the beginning.
void flatten(const Json& json, const std::string& key, Json& flat) {
  if (json.is_object()) {
    for (const auto& [name, value] : json.items()) {
      flatten(value, key.empty() ? name : key + "/" + name, flat);
    }
  } else if (json.is_array() && std::ssize(json) > kListed) {
    const Json first(json.begin(), json.begin() + kListed);
    flat[key] = fmt::format("{} and {} more", first.dump(), std::ssize(json) - kListed);
  } else {
    flat[key] = json;
  }
}

/// Everything in env.json but command and config.
std::vector<Json> environments(std::span<const RunRecord> runs) {
  std::vector<Json> result;
  for (const RunRecord& run : runs) {
    Json env = run.env;
    env.erase("command");
    env.erase("config");
    flatten(env, "", result.emplace_back(Json::object()));
  }
  return result;
}

std::string commands(std::span<const RunRecord> runs) {
  std::string html, last;
  for (const RunRecord& run : runs) {
    const auto words = run.env["command"].get<std::vector<std::string>>();
    const std::string command = "<pre>" + escape_html(shell_command(words)) + "</pre>\n";
    if (command != last) html += command;  // the arms of a sweep share one
    last = command;
  }
  return html;
}

}  // namespace

void write_report(std::span<const std::filesystem::path> run_dirs,
                  const std::filesystem::path& path, const std::string& title) {
  if (run_dirs.empty()) throw UsageError("report: no runs; give at least one run directory");
  const std::vector<RunRecord> runs = load_runs(run_dirs);
  std::vector<RunSummary> summaries;
  std::vector<std::string> names;
  for (const RunRecord& run : runs) {
    summaries.push_back(run.summary);
    names.push_back(run.summary.name);
  }
  const std::string page = fill_template(
      assets::page_html(),
      {{"title", escape_html(title)},
       {"subtitle",
        fmt::format("{} {}, made {}", runs.size(), runs.size() == 1 ? "run" : "runs", utc_now())},
       {"css", fmt::format("{}\n{}", assets::dygraph_css(), assets::page_css())},
       {"summary", summary_table(compare(summaries))},
       {"config", differences(side_by_side(configs(runs)), names)},
       {"commands", commands(runs)},
       {"environment", differences(side_by_side(environments(runs)), names)},
       {"data", json_for_script(page_data(runs))},
       {"scripts",
        fmt::format("<script>{}</script>\n<script>{}</script>\n<script>{}</script>",
                    assets::dygraph_js(), assets::synchronizer_js(), assets::page_js())}});
  replace_text(path, page);
}

}  // namespace difftape
