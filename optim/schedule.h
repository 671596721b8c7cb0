#pragma once
// The learning rate of every step, from 0 to steps - 1.

#include "optim/optim_config.h"

namespace difftape {

/// With w = warmup_steps, the peak is optim.lr and the floor optim.min_lr:
///   warm-up   step s < w has peak (s + 1) / w: peak / w at step 0, the peak at step w - 1.
///   decay     from the peak at step `start` to the floor at step steps - 1, and the floor after:
///               cosine   floor + (peak - floor) (1 + cos(pi x)) / 2
///               linear   floor + (peak - floor) (1 - x)
///               wsd      the same straight line, over the last decay_fraction of the steps
///             with x = (s - start) / (steps - 1 - start) and start = max(w - 1, 0); for wsd
///             start = max(w - 1, steps - 1 - round(decay_fraction steps)), the peak before it.
///   constant  stays at the peak.
/// If the warm-up takes all steps, nothing decays.
class Schedule final {
 public:
  Schedule(const OptimConfig& config, Index steps);
  double lr(Index step) const;

 private:
  double peak_, floor_;
  Index warmup_, start_, last_;
  ScheduleKind kind_;
};

}  // namespace difftape
