#pragma once
// What two runs differ in: what was asked for, where it ran, and from which step on the numbers
// that they logged are not the same bits.

#include <optional>
#include <string>
#include <vector>

#include "train/run/records/metrics_difference.h"
#include "train/study/compare/run_record.h"

namespace difftape::study {

/// A key with the values of both runs as text; nothing: the run does not know it.
struct DifferentValue {
  std::string key;
  std::optional<std::string> a, b;
};

struct RunDifference : run::MetricsDifference {
  std::vector<DifferentValue> config;       ///< keys in the order of the registry
  std::vector<DifferentValue> environment;  ///< all else of env.json, "build/commit", but the command
};

RunDifference difference(const RunRecord& a, const RunRecord& b);

}  // namespace difftape::study
