#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace difftape {

namespace {

double ratio(Index a, Index b) { return static_cast<double>(a) / static_cast<double>(b); }

/// Returns the remaining fraction of peak - floor at fraction x of the decay.
double left_after(ScheduleKind kind, double x) {
  switch (kind) {
    case ScheduleKind::cosine:
      return (1 + std::cos(std::numbers::pi * x)) / 2;
    case ScheduleKind::constant:
      return 1;
    case ScheduleKind::linear:
    case ScheduleKind::wsd:
      break;
  }
  return 1 - x;
}

}  // namespace

Schedule::Schedule(const OptimConfig& config, Index steps)
    : peak_(config.lr),
      floor_(config.min_lr),
      warmup_(config.warmup_steps),
      start_(std::max<Index>(warmup_ - 1, 0)),
      last_(steps - 1),
      kind_(config.schedule) {
  if (kind_ == ScheduleKind::wsd) {
    const auto length = std::llround(config.decay_fraction * static_cast<double>(steps));
    start_ = std::max<Index>(start_, last_ - length);
  }
}

double Schedule::lr(Index step) const {
  if (step < warmup_) return peak_ * ratio(step + 1, warmup_);
  if (step <= start_) return peak_;
  const double x = last_ > start_ ? std::min(1.0, ratio(step - start_, last_ - start_)) : 0.0;
  return std::lerp(floor_, peak_, left_after(kind_, x));
}

}  // namespace difftape
