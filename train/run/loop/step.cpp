#include "train/run/loop/step.h"

#include <chrono>
#include <cmath>

#include "core/profile.h"
#include "train/run/loop/first_non_finite.h"
#include "train/run/records/metric_registry.h"

namespace difftape::run {

namespace {

using Clock = std::chrono::steady_clock;
using profile::Category;

Var forward(Session& session, Tape& tape, const MicroBatches& batches, Index micro) {
  const profile::Span span(Category::pass, "forward");
  return session.loss(tape, batches(micro));
}

void backward(Tape& tape, const Var& loss, Index micros) {
  const profile::Span span(Category::pass, "backward");
  tape.backward(loss, Tensor::scalar(real(1) / static_cast<real>(micros)));
}

/// Clips and updates, unless the loss or a gradient is not finite.
void update(Session& session, Step& step) {
  const profile::Span span(Category::phase, "optimizer");
  step.norms = grad_norms(session.model.parameters());
  if (std::isfinite(step.loss) && std::isfinite(step.norms.global)) {
    const Config& config = session.config;
    if (diagnoses(config, step.number)) step.update.emplace();
    session.optimizer.step(step.lr, clip_scale(step.norms.global, config.optim.clip_norm),
                           step.update ? &*step.update : nullptr);
    return;
  }
  const Parameter* first = first_non_finite(session.model.parameters());
  step.diverged = {step.number,
                   std::isfinite(step.loss) ? metric("optim/grad_norm") : metric("train/loss"),
                   first ? first->name : ""};
}

}  // namespace

bool due(Index step, Index interval, Index steps) {
  return step == steps || (interval > 0 && step % interval == 0);
}

bool diagnoses(const Config& config, Index step) {
  const Index every = config.log.diagnostics_every;
  return (step == 1 && every > 0) || due(step, every, config.train.steps);
}

MicroBatches batches_of(const Session& session, Index number) {
  return [&session, number](Index micro) {
    const profile::Span span(Category::phase, "data");
    return session.data->train_batch(number - 1, micro);
  };
}

double accumulate_gradients(Session& session, const MicroBatches& batches,
                            const Tape::Watcher& watcher) {
  const Index micros = session.config.train.grad_accumulation;
  for (Parameter& parameter : session.model.parameters()) parameter.zero_grad();
  double total = 0;
  for (Index micro = 0; micro < micros; ++micro) {
    Tape tape(Tape::Mode::training, session.precision);
    tape.watch(watcher);
    const Var loss = forward(session, tape, batches, micro);
    total += static_cast<double>(loss.value().item());
    backward(tape, loss, micros);
  }
  return total / static_cast<double>(micros);
}

Step take_step(Session& session) {
  const Clock::time_point started = Clock::now();
  Step step;
  step.number = session.step + 1;
  step.lr = session.schedule->lr(session.step);
  const MicroBatches batches = batches_of(session, step.number);
  step.loss = accumulate_gradients(session, batches);
  update(session, step);
  session.step = step.number;
  session.grad_norms.push_back(step.norms.global);
  const bool loss_spike = session.loss_spikes.add(step.loss);
  const bool grad_spike = session.grad_spikes.add(step.norms.global);
  step.spike = loss_spike || grad_spike;
  step.seconds = std::chrono::duration<double>(Clock::now() - started).count();
  if (step.diverged) step.diverged->op = first_non_finite_op(session, batches);
  return step;
}

Index tokens_per_step(const Config& config) {
  return config.data.batch_size * config.data.seq_len * config.train.grad_accumulation;
}

}  // namespace difftape::run
