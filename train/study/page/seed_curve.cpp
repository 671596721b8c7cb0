#include "train/study/page/seed_curve.h"

#include <algorithm>
#include <map>

namespace difftape::study::page {

namespace {

struct AtStep {
  double sum = 0, low = 0, high = 0;
  int runs = 0;
};

void keep_extremes(const std::vector<double>& values, std::size_t begin, std::size_t end,
                   std::vector<std::size_t>& kept) {
  const auto at = [&](std::size_t i) { return values.begin() + static_cast<std::ptrdiff_t>(i); };
  const auto [low, high] = std::minmax_element(at(begin), at(end));
  kept.push_back(static_cast<std::size_t>(low - values.begin()));
  kept.push_back(static_cast<std::size_t>(high - values.begin()));
}

}  // namespace

SeedCurve seed_curve(const Cell& cell, const std::string& metric) {
  std::map<double, AtStep> steps;
  for (const RunRecord* run : cell.runs) {
    const Curve values = curve(run->metrics, metric);
    for (std::size_t i = 0; i < values.step.size(); ++i) {
      const double value = values.value[i];
      AtStep& at = steps[values.step[i]];
      at.low = at.runs == 0 ? value : std::min(at.low, value);
      at.high = at.runs == 0 ? value : std::max(at.high, value);
      at.sum += value;
      at.runs += 1;
    }
  }
  SeedCurve result;
  result.banded = cell.runs.size() > 1;
  for (const auto& [step, at] : steps) {
    result.step.push_back(step);
    result.mean.push_back(at.sum / at.runs);
    result.low.push_back(at.low);
    result.high.push_back(at.high);
  }
  return result;
}

SeedCurve decimate(const SeedCurve& curve, std::size_t points) {
  const std::size_t size = curve.step.size(), buckets = points / (curve.banded ? 4 : 2);
  if (size <= points || buckets == 0) return curve;
  std::vector<std::size_t> kept = {0, size - 1};
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    const std::size_t begin = bucket * size / buckets, end = (bucket + 1) * size / buckets;
    keep_extremes(curve.mean, begin, end, kept);
    if (!curve.banded) continue;
    std::vector<std::size_t> extremes;
    keep_extremes(curve.low, begin, end, extremes);
    kept.push_back(extremes.front());
    keep_extremes(curve.high, begin, end, extremes);
    kept.push_back(extremes.back());
  }
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  SeedCurve result;
  result.banded = curve.banded;
  for (const std::size_t i : kept) {
    result.step.push_back(curve.step[i]);
    result.mean.push_back(curve.mean[i]);
    result.low.push_back(curve.low[i]);
    result.high.push_back(curve.high[i]);
  }
  return result;
}

Curve seed_spikes(const Cell& cell, const std::string& metric) {
  std::vector<std::pair<double, double>> marks;
  for (const RunRecord* run : cell.runs) {
    const Curve found = spikes(curve(run->metrics, metric), spike_rule(run->env));
    for (std::size_t i = 0; i < found.step.size(); ++i) {
      marks.emplace_back(found.step[i], found.value[i]);
    }
  }
  std::sort(marks.begin(), marks.end());
  Curve result;
  for (const auto& [step, value] : marks) {
    result.step.push_back(step);
    result.value.push_back(value);
  }
  return result;
}

std::vector<double> divergences(const Cell& cell) {
  std::vector<double> steps;
  for (const RunRecord* run : cell.runs) {
    const auto& diverged = run->summary.status.diverged;
    if (diverged) steps.push_back(static_cast<double>(diverged->step));
  }
  return steps;
}

}  // namespace difftape::study::page
