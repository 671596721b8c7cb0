#include "train/run/records/metrics_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <tuple>

#include "core/real.h"
#include "train/run/records/metric_registry.h"

namespace difftape::run {
namespace {

constexpr std::string_view kSpeeds = "throughput/";

/// Returns the metric of the registry that is logged under a name, or the end of the registry.
const Metric* registered(const std::string& name) {
  return std::ranges::find_if(kMetrics, [&](const Metric& metric) {
    return has_parts(metric.per) ? name.starts_with(metric_of(metric.name, ""))
                                 : name == metric.name;
  });
}

using Found = std::optional<DifferentMetric>;

/// Compares the numbers of one step.
Found compared(const std::string& name, double a, double b) {
  if (same_bits(a, b)) return std::nullopt;
  if ((std::isnan(a) || std::isnan(b)) && !is_of_every_step(name)) return std::nullopt;
  return DifferentMetric{name, 0, a, b};
}

/// Pairs of rows of two tables with the same step.
class Comparison {
 public:
  Comparison(const MetricsTable& a, const MetricsTable& b) : steps_(a.step) {
    for (std::size_t i = 0, j = 0; i < a.step.size() && j < b.step.size();) {
      if (a.step[i] == b.step[j]) rows_.emplace_back(i, j);
      const bool next_a = a.step[i] <= b.step[j], next_b = b.step[j] <= a.step[i];
      if (next_a) ++i;
      if (next_b) ++j;
    }
  }

  void add(const MetricsTable& a, const MetricsTable& b, MetricsDifference& to) const {
    for (const auto& [name, column] : a.columns) {
      if (name.starts_with(kSpeeds)) continue;
      const auto other = b.columns.find(name);
      if (other == b.columns.end())
        to.metrics_of_a.push_back(name);
      else if (const Found found = first(name, column, other->second))
        to.metrics.push_back(*found);
    }
    for (const auto& [name, column] : b.columns)
      if (!a.columns.contains(name) && !name.starts_with(kSpeeds)) to.metrics_of_b.push_back(name);
  }

  Index common_steps() const { return std::ssize(rows_); }

 private:
  Found first(const std::string& name, const Column& a, const Column& b) const {
    for (const auto& [i, j] : rows_) {
      if (Found found = compared(name, a[i], b[j])) {
        found->step = static_cast<Index>(steps_[i]);
        return found;
      }
    }
    return std::nullopt;
  }

  const std::vector<double>& steps_;
  std::vector<std::pair<std::size_t, std::size_t>> rows_;
};

}  // namespace

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

bool is_of_every_step(const std::string& name) {
  const Metric* metric = registered(name);
  return metric != std::end(kMetrics) && metric->per == Per::run && metric->when == When::step;
}

std::string family_of(const std::string& name) {
  const Metric* metric = registered(name);
  const bool is_one = metric == std::end(kMetrics) || !has_parts(metric->per);
  return is_one ? name : metric_of(metric->name, "...");
}

bool MetricsDifference::same_numbers() const {
  return metrics.empty() && metrics_of_a.empty() && metrics_of_b.empty() && only_in_a == 0 &&
         only_in_b == 0;
}

MetricsDifference difference(const MetricsTable& a, const MetricsTable& b) {
  MetricsDifference found;
  const Comparison comparison(a, b);
  found.common_steps = comparison.common_steps();
  found.only_in_a = std::ssize(a.step) - found.common_steps;
  found.only_in_b = std::ssize(b.step) - found.common_steps;
  comparison.add(a, b, found);
  std::ranges::sort(found.metrics, {}, [](const DifferentMetric& metric) {
    return std::tuple(metric.step, registered(metric.name), metric.name);
  });
  return found;
}

}  // namespace difftape::run
