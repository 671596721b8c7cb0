#include "train/run/loop/logged_step.h"

#include <fmt/format.h>

#include <cmath>

#include "core/processes.h"
#include "train/run/records/metric_registry.h"

namespace difftape::run {

Step take_logged_step(TrainState& state) {
  const TrainConfig& config = state.config.train;
  Step step = train_step(state);
  if (!step.diverged && due(step.step, config.eval_interval, config.steps)) {
    Validation validation = state.validate();
    step.val_loss = validation.loss;
    step.val_metrics = std::move(validation.metrics);
    if (step.step == config.steps) step.group_losses = std::move(validation.groups);
    if (!std::isfinite(step.val_loss)) {
      const Parameter* first = first_non_finite(state.model.parameters(), state.optimizer.shards());
      step.diverged = {step.step, metric("val/loss"), first ? first->name : "",
                       first_non_finite_op_in_validation(state)};
    }
  }
  const bool logs = processes::rank() == 0;
  if (logs && (step.diverged || diagnoses(state.config, step.step)))
    step.diagnostics = state.diagnose();
  return step;
}

Metrics metrics_of(const TrainState& state, const Step& step, const Metrics& speed) {
  const LogConfig& log = state.config.log;
  const bool validated = !std::isnan(step.val_loss) ||
                         (step.diverged && step.diverged->quantity == metric("val/loss"));
  Metrics metrics{{metric("train/loss"), step.loss},
                  {metric("optim/lr"), step.lr},
                  {metric("optim/grad_norm"), step.norms.global},
                  {metric("spike_score/loss"), state.loss_spikes.score()},
                  {metric("spike_score/grad_norm"), state.grad_spikes.score()}};
  metrics.insert(metrics.end(), speed.begin(), speed.end());
  if (const double weight = state.config.model.z_loss_weight; weight > 0) {
    metrics.emplace_back(metric("train/z_loss"), weight * step.squared_log_z);
  }
  if (step.qk_clip) {
    metrics.emplace_back(metric("optim/qk_clip_logit_max"), step.qk_clip->largest);
    metrics.emplace_back(metric("optim/qk_clip_heads"), static_cast<double>(step.qk_clip->heads));
  }
  if (state.guard.active()) metrics.emplace_back(metric("optim/spike_scale"), step.spike_scale);
  if (validated) metrics.emplace_back(metric("val/loss"), step.val_loss);
  metrics.insert(metrics.end(), step.val_metrics.begin(), step.val_metrics.end());
  if (!step.group_losses.loss.empty()) {
    metrics.emplace_back(metric("val/group_loss"), step.group_losses.loss);
    metrics.emplace_back(metric("val/group_tokens"), step.group_losses.tokens);
  }
  const bool each = due(step.step, log.param_grad_norms_interval, state.config.train.steps);
  size_t i = 0;
  for (const Parameter& parameter : state.model.parameters()) {
    if (step.diverged || each) {
      metrics.emplace_back(metric_of(metric("optim/grad_norm"), parameter.name),
                           step.norms.per_parameter[i]);
    }
    if (step.update) {
      metrics.emplace_back(metric_of(metric("optim/update_ratio"), parameter.name),
                           step.update->update[i] / step.update->weight[i]);
    }
    ++i;
  }
  if (step.diagnostics) {
    const Metrics& more = step.diagnostics->metrics;
    metrics.insert(metrics.end(), more.begin(), more.end());
  }
  return metrics;
}

std::string text_of_domains(const Step& step) {
  std::string text;
  const std::string before = metric_of(metric("val/loss"), "");
  for (const auto& [name, loss] : step.val_metrics) {
    if (!name.starts_with(before)) continue;
    text += fmt::format("{}{} {:.4f}", text.empty() ? "" : ", ", name.substr(before.size()), loss);
  }
  return text;
}

}  // namespace difftape::run
