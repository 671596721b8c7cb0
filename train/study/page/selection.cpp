#include "train/study/page/sections.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "train/run/records/metric_registry.h"
#include "train/study/compare/measures.h"
#include "train/study/figures/drawing.h"
#include "train/system/number.h"

namespace difftape::study::page {

namespace {

/// Returns a fact of the data; NaN unless it is equal in all runs.
double shared_number(const Study& study, const char* fact) {
  const std::vector<const Row*> runs = study.runs();
  const std::string shared = runs.front()->fact(fact);
  const bool equal =
      std::ranges::all_of(runs, [&](auto* run) { return run->fact(fact) == shared; });
  return equal ? system::read_number<double>(shared).value_or(kNaN) : kNaN;
}

/// Values of several runs at a step.
struct AtStep {
  svg::Range range = {};
  double sum = 0;
  int runs = 0;
};

}  // namespace

double best_lr(const Study& study, const std::vector<LrCurve>& curves) {
  const Arm& base = study.reference() ? *study.reference() : study.arms.front();
  const auto at = static_cast<std::size_t>(&base - study.arms.data());
  const LrPoint* best = best_point(curves[at].points);
  const double lr = best ? best->lr : base.conditions.front().lr;
  const bool shared = std::ranges::all_of(
      study.arms, [lr](const Arm& arm) { return arm.conditions.size() == 1 || arm.at(lr); });
  return shared ? lr : kNaN;
}

const Condition* own_condition(const Arm& arm, const LrCurve& curve) {
  const Condition* own = arm.at(curve.own.lr);
  return own ? own : &arm.conditions.front();
}

const Condition* shown_condition(const Input& input, const Arm& arm) {
  if (arm.conditions.size() == 1) return &arm.conditions.front();
  if (!std::isnan(input.lr)) return arm.at(input.lr);
  return own_condition(arm, input.curves[static_cast<std::size_t>(&arm - input.study.arms.data())]);
}

std::string at_lr(const Input& input) {
  if (!input.study.is_swept()) return "";
  return std::isnan(input.lr) ? " at each arm's own learning rate"
                              : " at peak learning rate " + system::short_number(input.lr);
}

std::vector<Level> levels_of(const CurveChart& chart, const Study& study) {
  std::vector<Level> levels;
  const auto add = [&](const char* name, double value) {
    if (svg::fits_axis(value)) levels.push_back({name, value});
  };
  if (chart.bound == run::Bound::loss) add("best achievable", shared_number(study, "best_loss"));
  if (chart.bound == run::Bound::accuracy)
    add("best achievable", shared_number(study, "best_accuracy"));
  return levels;
}

Series training_clock(const Condition& condition) {
  const auto steps = [](const Row* run) { return run->curves().metrics.step.size(); };
  const Row& run = **std::ranges::max_element(condition.runs, {}, steps);
  const Series clock = measures::training_clock(run.curves());
  return clock.value.empty() || clock.value.back() == 0 ? Series{} : clock;
}

SeedCurve seed_curve(const Condition& condition, const std::string& metric) {
  std::map<double, AtStep> steps;
  for (const Row* run : condition.runs) {
    const Series values = curve(run->curves().metrics, metric);
    for (std::size_t i = 0; i < values.step.size(); ++i) {
      const double value = values.value[i];
      if (!svg::fits_axis(value)) continue;
      AtStep& at = steps[values.step[i]];
      at.range.add(value);
      at.sum += value;
      at.runs += 1;
    }
  }
  SeedCurve result;
  result.banded = condition.runs.size() > 1;
  for (const auto& [step, at] : steps) {
    result.step.push_back(step);
    result.mean.push_back(at.sum / at.runs);
    result.low.push_back(at.range.low);
    result.high.push_back(at.range.high);
  }
  return result;
}

SeedCurve decimate(const SeedCurve& curve, std::size_t points) {
  const std::size_t size = curve.step.size(), buckets = points / (curve.banded ? 4 : 2);
  if (size <= points || buckets == 0) return curve;
  std::set<std::size_t> kept = {0, size - 1};
  const auto keep = [&](const std::vector<double>& values, auto&& extreme) {
    for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
      const std::span stretch = std::span(values)
                                    .subspan(bucket * size / buckets)
                                    .first((bucket + 1) * size / buckets - bucket * size / buckets);
      kept.insert(static_cast<std::size_t>(&*extreme(stretch) - values.data()));
    }
  };
  keep(curve.mean, std::ranges::min_element);
  keep(curve.mean, std::ranges::max_element);
  if (curve.banded) keep(curve.low, std::ranges::min_element);
  if (curve.banded) keep(curve.high, std::ranges::max_element);
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

Series decimate(const Series& series, std::size_t points) {
  const SeedCurve kept =
      decimate(SeedCurve{series.step, series.value, series.value, series.value, false}, points);
  return {kept.step, kept.mean};
}

Series seed_spikes(const Condition& condition, const std::string& metric) {
  std::vector<std::pair<double, double>> marks;
  for (const Row* run : condition.runs) {
    const Series found = stats::finite(measures::counted_spikes(run->curves(), metric.c_str()));
    for (std::size_t i = 0; i < found.step.size(); ++i) {
      if (!svg::fits_axis(found.value[i])) continue;
      marks.emplace_back(found.step[i], found.value[i]);
    }
  }
  std::ranges::sort(marks);
  Series result;
  for (const auto& [step, value] : marks) {
    result.step.push_back(step);
    result.value.push_back(value);
  }
  return result;
}

std::vector<double> divergences(const Condition& condition) {
  std::vector<double> steps;
  for (const Row* run : condition.runs) {
    const auto& diverged = run->status.diverged;
    if (diverged) steps.push_back(static_cast<double>(diverged->step));
  }
  return steps;
}

}  // namespace difftape::study::page
