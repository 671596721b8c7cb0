#include "train/study/compare/lr_curves.h"

#include <cmath>
#include <limits>

#include "train/stats/descriptive.h"

namespace difftape::study {

namespace {

/// Of the bootstrap; any number does.
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
  LrPoint point{condition.lr, {}, 0, 0, {}};
  for (const RunRecord* run : condition.complete()) {
    point.runs += 1;
    point.diverged += run->diverged() ? 1 : 0;
    const double initial = run->initial_loss(), final = run->number("val_loss");
    // A run that finished without a validation loss says nothing of it.
    if (run->finished() && std::isnan(final)) continue;
    const double value = stats::capped_loss(final, std::isfinite(initial) ? initial : usual);
    if (std::isfinite(value)) point.values.push_back(value);
  }
  point.loss = stats::mean_interval(point.values);
  return point;
}

void add_sensitivity(LrCurve& curve) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  curve.sensitivity_limits = {kNaN, kNaN};
  stats::Groups losses;
  int finished = 0;
  for (const LrPoint& point : curve.points) {
    if (!point.values.empty()) losses.push_back(point.values);
    finished += point.runs - point.diverged;
  }
  if (finished == 0) return;
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
  const LrPoint* best = nullptr;
  for (const LrPoint& point : points) {
    if (point.runs == point.diverged || std::isnan(point.loss.mean)) continue;
    if (best == nullptr || point.loss.mean < best->loss.mean) best = &point;
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
