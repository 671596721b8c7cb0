#pragma once
// Compares the logged metrics of two runs bit for bit.

#include <string>
#include <vector>

#include "train/run/records/metrics.h"

namespace difftape::run {

/// A metric at the first step at which it differs.
struct DifferentMetric {
  std::string name;
  Index step = 0;
  double a = 0, b = 0;
};

struct MetricsDifference {
  Index common_steps = 0, only_in_a = 0, only_in_b = 0;  ///< numbers of logged steps
  /// Different metrics of both runs by step, then in the order of the registry. Speeds, which are
  /// never equal, are left out.
  std::vector<DifferentMetric> metrics;
  /// Metrics that only one of the runs logged.
  std::vector<std::string> metrics_of_a, metrics_of_b;

  /// Returns true if both logged the same numbers, bit for bit, at the same steps.
  bool same_numbers() const;
};

/// Compares metrics at the steps that both runs logged. NaN is a value of a metric that every step
/// logs; for other metrics NaN means not logged.
MetricsDifference difference(const MetricsTable& a, const MetricsTable& b);

/// Returns true if two numbers are equal bit for bit. All NaN are equal, because metrics.jsonl does
/// not distinguish them.
bool same_bits(double a, double b);

/// Returns true if every step logs a number of this name.
bool is_of_every_step(const std::string& name);

/// Returns the group of a logged name: "attn/entropy/..." for attn/entropy/3. Returns the name
/// itself if the metric has one value per step or is not in the registry.
std::string family_of(const std::string& name);

}  // namespace difftape::run
