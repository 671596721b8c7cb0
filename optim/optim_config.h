#pragma once
// Settings of the optimizer and its learning-rate schedule.

#include "core/names.h"
#include "core/real.h"

namespace difftape {

/// The update rule (optim/rules).
enum class OptimizerKind { adamw, muon, stable_adamw, lion, sgd };
constexpr auto names_of(OptimizerKind) {
  return std::to_array<Named<OptimizerKind>>({{"adamw", OptimizerKind::adamw},
                                              {"muon", OptimizerKind::muon},
                                              {"stable_adamw", OptimizerKind::stable_adamw},
                                              {"lion", OptimizerKind::lion},
                                              {"sgd", OptimizerKind::sgd}});
}

/// The learning-rate schedule after warm-up (optim/schedule.h).
enum class ScheduleKind { cosine, linear, constant, wsd };
constexpr auto names_of(ScheduleKind) {
  return std::to_array<Named<ScheduleKind>>({{"cosine", ScheduleKind::cosine},
                                             {"linear", ScheduleKind::linear},
                                             {"constant", ScheduleKind::constant},
                                             {"wsd", ScheduleKind::wsd}});
}

struct OptimConfig {
  OptimizerKind name = OptimizerKind::adamw;
  double lr = 1e-3;  ///< peak learning rate
  double min_lr = 0;
  ScheduleKind schedule = ScheduleKind::wsd;
  Index warmup_steps = 25;
  double decay_fraction = 0.2;  ///< wsd: fraction of the steps in the final decay
  double weight_decay = 1e-4;
  bool independent_weight_decay = true;  ///< decay follows the schedule, not lr
  bool decay_embeddings = false;
  std::array<double, 2> betas{0.9, 0.95};
  double eps = 1e-8;
  double momentum = 0.95;      ///< for muon and sgd
  double max_grad_norm = 1.0;  ///< 0: no clipping
};

}  // namespace difftape
