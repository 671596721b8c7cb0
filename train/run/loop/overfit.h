#pragma once
// Whether a model can learn one batch by heart, which every model must that is wired correctly.

#include <functional>
#include <optional>

#include "train/run/config/config.h"
#include "train/run/records/run_files.h"

namespace difftape::run {

struct OverfitRequest {
  Index steps = 300;     ///< at most
  double target = 0.01;  ///< nats per token that is scored, as the loss of a training run
  Index sequences = 1;   ///< of the batch: the first of the data
};

struct Overfit {
  Index step = 0;                ///< steps that were taken
  double first = 0, lowest = 0;  ///< losses before the first update, and of all
  bool reached = false;          ///< the lowest is below the target
  std::optional<Divergence> diverged = {};
};

/// Trains on the first sequences of the first batch, again and again, until the loss is below the
/// target. Model, data and precision are those of the configuration; the optimiser is not: AdamW
/// without decay at a rate of 3e-3 that falls linearly to 0 after a tenth of the steps. `watch`
/// sees each step and its loss. Throws what the data and the model throw.
Overfit overfit(Config config, const OverfitRequest& request,
                const std::function<void(Index step, double loss)>& watch = {});

}  // namespace difftape::run
