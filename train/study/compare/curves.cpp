#include "train/study/compare/curves.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "train/stats/descriptive.h"

namespace difftape::study {

namespace {

/// Whether `name` is `metric` itself or that of a layer, "metric/3".
bool names_metric(const std::string& name, const std::string& metric) {
  if (!name.starts_with(metric)) return false;
  const std::string rest = name.substr(metric.size());
  return rest.empty() || (rest.size() > 1 && rest.front() == '/' &&
                          std::all_of(rest.begin() + 1, rest.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; }));
}

}  // namespace

Series logged(const run::MetricsTable& metrics, const std::string& name) {
  Series series;
  const auto found = metrics.columns.find(name);
  if (found == metrics.columns.end()) return series;
  const auto& column = found->second;
  for (std::size_t i = 0; i < column.values().size(); ++i) {
    if (std::isnan(column.values()[i])) continue;
    series.step.push_back(metrics.step[column.row(i)]);
    series.value.push_back(column.values()[i]);
  }
  return series;
}

Series curve(const run::MetricsTable& metrics, const std::string& name) {
  return stats::finite(logged(metrics, name));
}

std::vector<Series> layers_of(const run::MetricsTable& metrics, const std::string& name) {
  std::vector<Series> layers;
  for (auto column = metrics.columns.lower_bound(name);
       column != metrics.columns.end() && column->first.starts_with(name); ++column) {
    if (names_metric(column->first, name)) layers.push_back(logged(metrics, column->first));
  }
  std::erase_if(layers, [](const Series& layer) { return layer.step.empty(); });
  return layers;
}

std::vector<double> last_layers(const run::MetricsTable& metrics, const std::string& name) {
  const std::vector<Series> layers = layers_of(metrics, name);
  double last = 0;
  for (const Series& layer : layers) last = std::max(last, layer.step.back());
  std::vector<double> values;
  for (const Series& layer : layers) {
    if (layer.step.back() == last) values.push_back(layer.value.back());
  }
  return values;
}

bool has_metric(const run::MetricsTable& metrics, const std::string& name) {
  return std::any_of(metrics.columns.begin(), metrics.columns.end(),
                     [&](const auto& column) { return names_metric(column.first, name); });
}

Series spikes(const Series& curve, const stats::SpikeRule& rule, stats::SpikeSeries holds) {
  Series result;
  stats::SpikeDetector detector(rule, holds);
  for (std::size_t i = 0; i < curve.step.size(); ++i) {
    if (!detector.add(curve.value[i])) continue;
    result.step.push_back(curve.step[i]);
    result.value.push_back(curve.value[i]);
  }
  return result;
}

}  // namespace difftape::study
