#include "train/study/compare/curves.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "core/real.h"
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

Series decimate(const Series& curve, std::size_t points) {
  const std::size_t size = curve.step.size(), buckets = points / 2;
  if (size <= points || buckets == 0) return curve;
  std::vector<std::size_t> kept = {0};
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    const auto begin = curve.value.begin() + static_cast<std::ptrdiff_t>(bucket * size / buckets);
    const auto end =
        curve.value.begin() + static_cast<std::ptrdiff_t>((bucket + 1) * size / buckets);
    const auto [low, high] = std::minmax_element(begin, end);
    kept.push_back(static_cast<std::size_t>(std::min(low, high) - curve.value.begin()));
    kept.push_back(static_cast<std::size_t>(std::max(low, high) - curve.value.begin()));
  }
  kept.push_back(size - 1);
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  Series result;
  for (const std::size_t i : kept) {
    result.step.push_back(curve.step[i]);
    result.value.push_back(curve.value[i]);
  }
  return result;
}

namespace {

/// The seed of the bootstrap; any number will do.
constexpr std::uint64_t kSeed = 1;

/// The mean over the arm's runs, for those that diverged before they knew theirs.
double usual_initial_loss(const Arm& arm) {
  std::vector<double> known;
  for (const RunRecord* run : arm.runs()) {
    if (std::isfinite(run->initial_loss())) known.push_back(run->initial_loss());
  }
  return stats::mean(known);
}

LrPoint point_of(const Condition& condition, double usual) {
  LrPoint point{.lr = condition.lr, .loss = {}, .runs = 0, .diverged = 0, .values = {}};
  for (const RunRecord* run : condition.complete()) {
    point.runs += 1;
    point.diverged += run->diverged() ? 1 : 0;
    point.failed += run->diverged() || run->number("trained") == 0 ? 1 : 0;
    const double initial = run->initial_loss(), final = run->number("val_loss");
    // A run that finished without a validation loss says nothing of it.
    if (run->finished() && std::isnan(final)) continue;
    const double value = stats::capped_loss(final, std::isfinite(initial) ? initial : usual);
    if (!std::isfinite(value)) continue;
    point.values.push_back(value);
    point.seeds.push_back(run->seed);
  }
  point.loss = stats::mean_interval(point.values);
  return point;
}

void add_sensitivity(LrCurve& curve) {
  curve.sensitivity_limits = {kNaN, kNaN};
  stats::Groups losses;
  int trained = 0;
  for (const LrPoint& point : curve.points) {
    if (!point.values.empty()) losses.push_back(point.values);
    trained += point.runs - point.failed;
  }
  if (trained == 0) return;
  curve.sensitivity.mean = stats::lr_sensitivity(losses);
  const stats::Limits limits = stats::bootstrap_limits(
      losses, stats::lr_sensitivity, RandomStream(kSeed, "bootstrap/" + curve.arm));
  if (std::isnan(curve.sensitivity.mean)) return;
  curve.sensitivity_limits = limits;
  curve.sensitivity.half_width = (limits.high - limits.low) / 2;
}

}  // namespace

std::vector<LrPoint> lr_points(const Arm& arm) {
  std::vector<LrPoint> points;
  const double usual = usual_initial_loss(arm);
  for (const Condition& condition : arm.conditions) {
    LrPoint point = point_of(condition, usual);
    if (point.runs > 0) points.push_back(std::move(point));
  }
  return points;
}

const LrPoint* best_point(std::span<const LrPoint> points) {
  const auto rank = [](const LrPoint& point) {
    return std::pair(static_cast<double>(point.failed) / point.runs, point.loss.mean);
  };
  const LrPoint* best = nullptr;
  for (const LrPoint& point : points) {
    if (point.runs == point.diverged || std::isnan(point.loss.mean)) continue;
    if (best == nullptr || rank(point) < rank(*best)) best = &point;
  }
  return best;
}

std::vector<LrCurve> lr_curves(const Study& study) {
  std::vector<LrCurve> curves;
  for (const Arm& arm : study.arms) {
    curves.push_back({arm.name, lr_points(arm), {}, {}});
    add_sensitivity(curves.back());
  }
  return curves;
}

}  // namespace difftape::study
