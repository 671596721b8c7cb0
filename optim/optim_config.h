#pragma once
// The optimiser and its learning-rate schedule, as plain values.

#include "core/names.h"
#include "core/real.h"

namespace difftape {

/// Course of the learning rate after warm-up (optim/schedule.h).
enum class ScheduleKind { cosine, linear, constant, wsd };
template <>
inline constexpr auto kNames<ScheduleKind> =
    std::to_array<Named<ScheduleKind>>({{"cosine", ScheduleKind::cosine},
                                        {"linear", ScheduleKind::linear},
                                        {"constant", ScheduleKind::constant},
                                        {"wsd", ScheduleKind::wsd}});

struct OptimConfig {
  double lr = 1e-3;  ///< peak learning rate
  double min_lr = 1e-4;
  ScheduleKind schedule = ScheduleKind::cosine;
  Index warmup_steps = 50;
  double decay_fraction = 0.2;  ///< wsd: share of the steps in the final decay
  double weight_decay = 0.1;
  bool decay_embeddings = false;
  std::array<double, 2> betas{0.9, 0.95};
  double eps = 1e-8;
  double clip_norm = 1.0;  ///< 0: no clipping
};

}  // namespace difftape
