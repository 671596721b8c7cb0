#include "train/run/loop/overfit.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "train/run/data/dataset.h"
#include "train/run/loop/step.h"

namespace difftape::run {
namespace {

constexpr double kLr = 3e-3;

Config learning_by_heart(Config config, const OverfitRequest& request) {
  config.data.batch_size = request.sequences;
  config.train.gradient_accumulation_steps = 1;
  config.train.init_from.clear();
  config.train.steps = request.steps;
  config.optim = {.lr = kLr,
                  .min_lr = 0,
                  .schedule = ScheduleKind::linear,
                  .warmup_steps = request.steps / 10,
                  .weight_decay = 0};
  config.log.diagnostics_interval = 0;
  return config;
}

}  // namespace

Overfit overfit(Config config, const OverfitRequest& request,
                const std::function<void(Index step, double loss)>& watch) {
  config = learning_by_heart(std::move(config), request);
  const auto data = make_dataset(config.data, config.model, config.run.seed,
                                 config.train.gradient_accumulation_steps);
  TrainState state(config, std::make_unique<FixedBatches>(std::vector{data->train_batch(0, 0)},
                                                          data->vocab_size()));
  Overfit result;
  while (result.step < request.steps && !result.reached && !result.diverged) {
    const Step step = train_step(state);
    result.step = step.step;
    if (step.step == 1) result.first = result.lowest = step.loss;
    result.lowest = std::min(result.lowest, step.loss);
    result.reached = step.loss < request.target;
    result.diverged = step.diverged;
    if (watch) watch(step.step, step.loss);
  }
  return result;
}

}  // namespace difftape::run
