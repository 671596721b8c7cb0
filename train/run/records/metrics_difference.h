#pragma once
// Compares what two runs logged, bit for bit.

#include <string>
#include <vector>

#include "train/run/records/metrics.h"

namespace difftape::run {

/// A metric, one item of a list as "attn/head/lambda/0[1]", at the first step at which it differs.
struct DifferentMetric {
  std::string name;
  Index step = 0;
  double a = 0, b = 0;
};

struct MetricsDifference {
  Index common_steps = 0, only_in_a = 0, only_in_b = 0;  ///< steps that were logged
  /// Metrics of both runs, by step, those of a step in the order of the registry. Left out are
  /// speeds, which are never the same.
  std::vector<DifferentMetric> metrics;
  /// Metrics that only one of the runs logged.
  std::vector<std::string> metrics_of_a, metrics_of_b;

  /// Returns true if both logged the same numbers, bit for bit, at the same steps.
  bool same_numbers() const;
};

/// Compares numbers at the steps at which both logged them. A metric that is logged at every step
/// may be NaN; NaN of another one means that it was not logged.
MetricsDifference difference(const MetricsTable& a, const MetricsTable& b);

/// Returns true if two numbers are equal bit for bit. All NaN are one: metrics.jsonl does not tell
/// them apart.
bool same_bits(double a, double b);

/// Returns true if each step logs a number of this name.
bool is_of_every_step(const std::string& name);

/// Returns the group of a logged name: "attn/entropy/..." of attn/entropy/3. That is the name
/// itself if the metric has one value per step or is not in the registry.
std::string family_of(const std::string& name);

}  // namespace difftape::run
