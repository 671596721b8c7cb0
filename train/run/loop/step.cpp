#include "train/run/loop/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/distributed.h"
#include "core/error.h"
#include "core/profile.h"
#include "optim/gradient_exchange.h"
#include "train/run/loop/leaves.h"
#include "train/run/records/metric_registry.h"

namespace difftape::run {
namespace {

using Clock = std::chrono::steady_clock;
using profile::Category;

Var forward(TrainState& state, Tape& tape, const Batch& batch, LossTerms& terms) {
  const profile::Span span(Category::pass, "forward");
  return state.loss(tape, batch, &terms, state.step_observer());
}

void backward(Tape& tape, const Var& loss, double scale) {
  const profile::Span span(Category::pass, "backward");
  tape.backward(loss, Tensor::scalar(static_cast<real>(scale)));
}

/// Passes on the gradient of each parameter as soon as it is complete: during the backward pass if
/// the tape has the events, else after it.
class CompleteGradients {
 public:
  CompleteGradients(ParameterSet& parameters, std::function<void(Parameter&)> hand_on)
      : parameters_(parameters), hand_on_(std::move(hand_on)), done_(parameters.size()) {}

  /// Returns events that also call `also`. They must not outlive this object.
  Tape::Events events(const Tape::Events& also) {
    const auto progress_after = [](const Tape::Events::See& see) {
      return [&see](const char* op, std::string_view scope, const Tensor& seen) {
        if (see) see(op, scope, seen);
        distributed::progress();
      };
    };
    return {progress_after(also.on_value), progress_after(also.on_gradient),
            [this](Parameter& parameter) { hand_on(parameter); }};
  }
  void hand_on_the_rest() {
    for (Parameter& parameter : parameters_)
      if (!done_[parameter.position]) hand_on(parameter);
  }

 private:
  void hand_on(Parameter& parameter) {
    if (done_[parameter.position]) throw std::logic_error("a gradient grew after it was complete");
    done_[parameter.position] = true;
    hand_on_(parameter);
  }

  ParameterSet& parameters_;
  std::function<void(Parameter&)> hand_on_;
  std::vector<bool> done_;
};

/// Clips and updates, unless the loss or a gradient is not finite.
void update(TrainState& state, Step& step) {
  const profile::Span span(Category::phase, "optimizer");
  const Shards& shards = state.optimizer.shards();
  step.norms = grad_norms(state.model.parameters(), shards);
  if (std::isfinite(step.loss) && std::isfinite(step.norms.global)) {
    const Config& config = state.config;
    if (diagnoses(config, step.step)) step.update.emplace();
    const double scale = clip_scale(step.norms.global, config.optim.max_grad_norm);
    state.optimizer.step(step.lr, scale, step.update ? &*step.update : nullptr);
    if (state.qk_clip) step.qk_clip = state.qk_clip->clip(state.model.parameters());
    if (state.balancer) state.balancer->update(state.model.parameters());
    return;
  }
  if (state.qk_clip) step.qk_clip = state.qk_clip->seen();
  const Parameter* first = first_non_finite(state.model.parameters(), shards);
  step.diverged = {step.step,
                   std::isfinite(step.loss) ? metric("optim/grad_norm") : metric("train/loss"),
                   first ? first->name : ""};
}

}  // namespace

bool due(Index step, Index interval, Index steps) {
  return step == steps || (interval > 0 && step % interval == 0);
}

bool diagnoses(const Config& config, Index step) {
  const Index every = config.log.diagnostics_interval;
  return (step == 1 && every > 0) || due(step, every, config.train.steps);
}

MicroBatches batches_of(const TrainState& state, Index number) {
  return [&state, number](Index micro) {
    const profile::Span span(Category::phase, "data");
    return state.data->train_batch(number - 1, micro);
  };
}

namespace {

/// The micro-batches of a step that this process reads, and the numbers of scored targets of all.
struct StepData {
  Index first = 0;            ///< number of the first of `own` in the step
  std::vector<Batch> own;     ///< micro-batches of which this process computes leaves
  std::vector<Index> scored;  ///< by micro-batch of the step
  Index total = 0;            ///< sum of `scored`

  const Batch& micro_batch(Index micro) const { return own[micro - first]; }
  /// Returns the fraction of the scored targets of the step that are in a micro-batch.
  double fraction(Index micro) const {
    return static_cast<double>(scored[micro]) / static_cast<double>(total);
  }
};

StepData read_step(const MicroBatches& batches, LeafSpan share, Index pieces, Index micros) {
  StepData data;
  data.first = share.begin / pieces;
  data.scored.resize(micros);
  for (Index micro = data.first; micro * pieces < share.end; ++micro) {
    data.own.push_back(batches(micro));
    data.scored[micro] = data.own.back().scored_targets();
  }
  distributed::combine(data.scored);
  data.total = std::accumulate(data.scored.begin(), data.scored.end(), Index{0});
  throw_if<DataError>(data.total == 0, "all targets of a step are ignored; need at least one");
  return data;
}

/// Returns the means of the terms of leaves over the scored tokens of the step.
StepTerms mean_of(std::span<const StepTerms> leaves, const StepData& data, Index pieces) {
  // Relative to the first micro-batch that counts, weights are exact if all have equal counts.
  const auto unit = static_cast<double>(*std::ranges::find_if(data.scored, std::identity()));
  StepTerms mean;
  for (Index i = 0; i < std::ssize(leaves); ++i) {
    const double weight = static_cast<double>(data.scored[i / pieces]) / unit;
    mean.loss += weight * leaves[i].loss;
    mean.squared_log_z += weight * leaves[i].squared_log_z;
    mean.router_loss += weight * leaves[i].router_loss;
  }
  const double weights = static_cast<double>(data.total) / unit;
  return {mean.loss / weights, mean.squared_log_z / weights, mean.router_loss / weights};
}

}  // namespace

StepTerms accumulate_gradients(TrainState& state, const MicroBatches& batches,
                               const Tape::Events& events) {
  const TrainConfig& config = state.config.train;
  const Index micros = config.gradient_accumulation_steps;
  const double ramp = gradient_ramp_at(config, state.step + 1);
  ParameterSet& parameters = state.model.parameters();
  const Index pieces = leaves_per_micro_batch(state.config, parameters.count());
  const Index leaves = micros * pieces;
  const LeafSpan share = leaves_of(leaves, distributed::count(), distributed::rank());
  std::optional<GradientExchange> exchange;
  if (state.qk_clip) state.qk_clip->reset();
  if (state.balancer) state.balancer->reset();
  std::vector<StepTerms> terms_of(leaves);
  const StepData data = read_step(batches, share, pieces, micros);
  for (Index i = share.begin; i < share.end; ++i) {
    const bool last = i + 1 == share.end;
    const Leaf leaf = leaf_of(data.micro_batch(i / pieces), pieces, i % pieces);
    for (Parameter& parameter : parameters) parameter.zero_grad();
    CompleteGradients gradients(parameters, [&](Parameter& parameter) {
      state.gradient_sums[parameter.position].add({i, 1}, parameter.grad);
      if (last) exchange->send(parameter.position);
    });
    Tape tape(Tape::Mode::training, state.precision);
    tape.set_events(last && distributed::count() > 1 ? gradients.events(events) : events);
    LossTerms terms;
    const Var loss = forward(state, tape, leaf.batch, terms);
    terms_of[i] = {leaf.weight * static_cast<double>(terms.cross_entropy),
                   leaf.weight * terms.squared_log_z, leaf.weight * terms.router_loss};
    if (last) exchange.emplace(parameters, state.optimizer.shards(), state.gradient_sums, leaves);
    backward(tape, loss, ramp * data.fraction(i / pieces) * leaf.weight);
    if (state.balancer) state.balancer->end_pass();
    gradients.hand_on_the_rest();
  }
  {
    const profile::Span span(Category::phase, "exchange");
    exchange->finish();
    distributed::combine(terms_of);
    if (state.qk_clip)
      for (QkClip::Layer& layer : state.qk_clip->layers())
        layer.join(distributed::all_of(std::span<const real>(layer.largest)));
    if (state.balancer) state.balancer->join_processes();
  }
  return mean_of(terms_of, data, pieces);
}

Step train_step(TrainState& state, const Tape::Events& events) {
  const Clock::time_point started = Clock::now();
  Step step;
  step.step = state.step + 1;
  step.lr = state.schedule.lr(state.step);
  const MicroBatches batches = batches_of(state, step.step);
  const StepTerms terms = accumulate_gradients(state, batches, events);
  step.loss = terms.loss;
  step.squared_log_z = terms.squared_log_z;
  step.router_loss = terms.router_loss;
  update(state, step);
  step.seconds = std::chrono::duration<double>(Clock::now() - started).count();
  // Repeats the step with its own factor of the gradient, which depends on state.step.
  if (step.diverged) step.diverged->op = first_non_finite_op(state, batches);
  state.step = step.step;
  return step;
}

Step take_logged_step(TrainState& state) {
  const TrainConfig& config = state.config.train;
  Step step = train_step(state);
  if (!step.diverged && due(step.step, config.eval_interval, config.steps)) {
    Validation validation = state.validate();
    step.val_loss = validation.loss;
    step.val_metrics = std::move(validation.metrics);
    if (!std::isfinite(step.val_loss)) {
      const Parameter* first = first_non_finite(state.model.parameters(), state.optimizer.shards());
      step.diverged = {step.step, metric("val/loss"), first ? first->name : "",
                       first_non_finite_op_in_validation(state)};
    }
  }
  const bool logs = distributed::rank() == 0;
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
                  {metric("optim/grad_norm"), step.norms.global}};
  metrics.insert(metrics.end(), speed.begin(), speed.end());
  if (const double weight = state.config.model.z_loss_weight; weight > 0)
    metrics.emplace_back(metric("train/z_loss"), weight * step.squared_log_z);
  if (needs_whole_micro_batches(state.config.model))
    metrics.emplace_back(metric("train/router_loss"), step.router_loss);
  if (step.qk_clip) {
    metrics.emplace_back(metric("optim/qk_clip_logit_max"), step.qk_clip->largest);
    metrics.emplace_back(metric("optim/qk_clip_heads"), static_cast<double>(step.qk_clip->heads));
  }
  if (validated) metrics.emplace_back(metric("val/loss"), step.val_loss);
  metrics.insert(metrics.end(), step.val_metrics.begin(), step.val_metrics.end());
  const bool each = due(step.step, log.param_grad_norms_interval, state.config.train.steps);
  size_t i = 0;
  for (const Parameter& parameter : state.model.parameters()) {
    const bool trained = parameter.role != Role::state;
    if (trained && (step.diverged || each)) {
      metrics.emplace_back(metric_of(metric("optim/grad_norm"), parameter.name),
                           step.norms.per_parameter[i]);
    }
    if (trained && step.update) {
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

Index tokens_per_step(const Config& config) {
  return config.data.batch_size * config.data.seq_len * config.train.gradient_accumulation_steps;
}

namespace {

/// Returns events that store the first op with a non-finite value in `found`, which must outlive
/// them.
Tape::Events events_for(std::string& found) {
  const auto see = [&found](const char* pass) {
    return [&found, pass](const char* op, std::string_view scope, const Tensor& seen) {
      if (!found.empty() || seen.all_finite()) return;
      found = fmt::format("{}{}{}, {}", op, scope.empty() ? "" : " in ", scope, pass);
    };
  };
  return {.on_value = see("forward"), .on_gradient = see("backward")};
}

/// Returns the finding of the first process that has one, because its leaves come first.
std::string first_of_all(std::string found) {
  const std::array<char, 1> here{!found.empty()};
  const std::vector<char> all = distributed::all_of(std::span<const char>(here));
  const auto first = std::ranges::find(all, char{1});
  return first == all.end() ? "" : distributed::broadcast(std::move(found), first - all.begin());
}

}  // namespace

std::string first_non_finite_op(TrainState& state, const MicroBatches& batches) {
  std::string found;
  accumulate_gradients(state, batches, events_for(found));
  return first_of_all(std::move(found));
}

std::string first_non_finite_op_in_validation(TrainState& state) {
  std::string found;
  state.validate(events_for(found));
  return first_of_all(std::move(found));
}

}  // namespace difftape::run
