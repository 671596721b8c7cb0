#include "optim/schedule.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace difftape {

namespace {

/// What is left of peak - floor after the share x of the decay: 1 at x = 0.
using Decay = double (*)(double x);

struct Kind {
  std::string_view name;
  Decay decay;
  bool decays_late;  // only over the last decay_fraction
};
double line(double x) { return 1 - x; }
double ratio(Index a, Index b) { return static_cast<double>(a) / static_cast<double>(b); }
constexpr std::array kKinds{
    Kind{"cosine", [](double x) { return (1 + std::cos(std::numbers::pi * x)) / 2; }, false},
    Kind{"linear", line, false},
    Kind{"constant", [](double) { return 1.0; }, false},
    Kind{"wsd", line, true},
};

class WarmupThenDecay : public Schedule {
 public:
  WarmupThenDecay(const OptimConfig& config, const Kind& kind, Index steps)
      : peak_(config.lr),
        floor_(config.min_lr),
        warmup_(config.warmup_steps),
        start_(std::max<Index>(warmup_ - 1, 0)),
        last_(steps - 1),
        decay_(kind.decay) {
    if (kind.decays_late) {
      const auto length = std::llround(config.decay_fraction * static_cast<double>(steps));
      start_ = std::max<Index>(start_, last_ - length);
    }
  }

  double lr(Index step) const override {
    if (step < warmup_) return peak_ * ratio(step + 1, warmup_);
    if (step <= start_) return peak_;
    const double x = last_ > start_ ? std::min(1.0, ratio(step - start_, last_ - start_)) : 0.0;
    return std::lerp(floor_, peak_, decay_(x));
  }

 private:
  double peak_, floor_;
  Index warmup_, start_, last_;
  Decay decay_;
};

}  // namespace

std::unique_ptr<Schedule> make_schedule(const OptimConfig& config, Index steps) {
  for (const Kind& kind : kKinds) {
    if (kind.name == config.schedule) {
      return std::make_unique<WarmupThenDecay>(config, kind, steps);
    }
  }
  throw ConfigError(fmt::format("optim.schedule is '{}'; need one of {}", config.schedule,
                                fmt::join(schedule_kinds(), ", ")));
}

std::span<const std::string_view> schedule_kinds() {
  static const auto names = [] {
    std::array<std::string_view, kKinds.size()> all;
    std::transform(kKinds.begin(), kKinds.end(), all.begin(), [](const Kind& k) { return k.name; });
    return all;
  }();
  return names;
}

}  // namespace difftape
