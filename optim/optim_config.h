#pragma once
// The optimiser and its learning-rate schedule, as plain values.

#include <array>
#include <string>

#include "core/real.h"

namespace difftape {

struct OptimConfig {
  double lr = 1e-3;  ///< peak learning rate
  double min_lr = 1e-4;
  std::string schedule = "cosine";  ///< cosine, linear, constant, wsd
  Index warmup_steps = 50;
  double decay_fraction = 0.2;  ///< wsd: share of the steps in the final decay
  double weight_decay = 0.1;
  bool decay_embeddings = false;
  std::array<double, 2> betas{0.9, 0.95};
  double eps = 1e-8;
  double clip_norm = 1.0;  ///< 0: no clipping
};

}  // namespace difftape
