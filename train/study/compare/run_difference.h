#pragma once
// What two runs differ in: what was asked for, where it ran, and from which step on the numbers
// that they logged are not the same bits.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "train/study/compare/run_record.h"

namespace difftape::study {

/// A key with the values of both runs as text; nothing: the run does not know it.
struct DifferentValue {
  std::string key;
  std::optional<std::string> a, b;
};

/// A metric, one item of a list as "attn/head/lambda/0[1]", at the first step at which it differs.
struct DifferentMetric {
  std::string name;
  Index step = 0;
  double a = 0, b = 0;
};

/// What a logged name is one of: "attn/entropy/..." of attn/entropy/3. Itself, if the metric has
/// one value a step or is not in the registry.
std::string family_of(const std::string& name);

struct RunDifference {
  std::vector<DifferentValue> config;  ///< keys of today, in the order of `a`
  std::vector<DifferentValue>
      environment;  ///< all else of env.json, "build/commit", but the command
  Index common_steps = 0, only_in_a = 0, only_in_b = 0;  ///< steps that were logged
  /// Metrics of both runs, by step, those of a step in the order of the registry. Left out are
  /// speeds, which are never the same.
  std::vector<DifferentMetric> metrics;
  /// Metrics that only one of the runs logged.
  std::vector<std::string> metrics_of_a, metrics_of_b;

  /// Whether both logged the same numbers, bit for bit, at the same steps.
  bool same_numbers() const;
};

/// Numbers are compared at steps at which both runs logged them. A metric that is logged at every
/// step may be NaN; NaN of another one means that it was not logged.
RunDifference difference(const RunRecord& a, const RunRecord& b);

}  // namespace difftape::study
