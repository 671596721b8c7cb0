#include "train/app/replay/spike_replay.h"

#include <algorithm>
#include <limits>
#include <set>

#include "core/error.h"
#include "train/app/replay/bits.h"
#include "train/app/replay/recorded_run.h"
#include "train/run/loop/step.h"
#include "train/run/records/metric_registry.h"

namespace difftape::app {

namespace {

/// The windows before a step, filled from the log.
struct Judges {
  stats::SpikeDetector loss, grad;

  Judges(const RecordedRun& run, Index before) : loss(run.rule), grad(run.rule) {
    for (const double step : run.metrics.step) {
      const auto number = static_cast<Index>(step);
      if (number >= before) return;
      loss.add(run.logged(run::metric("train/loss"), number));
      grad.add(run.logged(run::metric("optim/grad_norm"), number));
    }
  }
};

Encounter meet(run::Session& session, Index batch, const Judges& judges) {
  Encounter result;
  result.state = session.step + 1;
  result.batch = batch;
  result.loss = accumulate_gradients(session, batches_of(session, batch));
  result.grad_norm = grad_norms(session.model.parameters()).global;
  result.loss_verdict = judges.loss.judge(result.loss);
  result.grad_verdict = judges.grad.judge(result.grad_norm);
  return result;
}

std::optional<Mismatch> mismatch(const RecordedRun& run, Index step, double loss, double grad) {
  const double logged_loss = run.logged(run::metric("train/loss"), step);
  const double logged_grad = run.logged(run::metric("optim/grad_norm"), step);
  if (!same_bits(loss, logged_loss))
    return Mismatch{step, run::metric("train/loss"), logged_loss, loss};
  if (!same_bits(grad, logged_grad))
    return Mismatch{step, run::metric("optim/grad_norm"), logged_grad, grad};
  return std::nullopt;
}

/// Steps `offsets` away from `step`, within [1, last], ascending.
std::set<Index> steps_around(Index step, const std::vector<Index>& offsets, Index last) {
  std::set<Index> steps;
  for (const Index offset : offsets) {
    if (step + offset >= 1 && step + offset <= last) steps.insert(step + offset);
  }
  return steps;
}

void conclude(SpikeReplay& replay) {
  const Encounter& own = replay.encounters.front();
  const auto spikes_too = [&](const Encounter& other) {
    return (own.loss_verdict.spike && other.loss_verdict.spike) ||
           (own.grad_verdict.spike && other.grad_verdict.spike);
  };
  for (const Encounter& other : replay.encounters) {
    if (other.state == own.state && other.batch != own.batch) {
      replay.other_batches += 1;
      replay.other_batches_spike += spikes_too(other) ? 1 : 0;
    } else if (other.state < own.state) {
      replay.earlier_states += 1;
      replay.earlier_states_spike += spikes_too(other) ? 1 : 0;
    }
  }
  if (!spikes_too(own)) return;
  replay.cause = cause_of(replay.other_batches, replay.other_batches_spike, replay.earlier_states,
                          replay.earlier_states_spike);
}

/// Trains through the states, each of which meets what it is to meet, until the last or a mismatch.
void walk(const RecordedRun& run, run::Session& session, const std::set<Index>& states,
          const std::set<Index>& batches, SpikeReplay& replay) {
  const Judges judges(run, replay.step);
  while (true) {
    const Index next = session.step + 1;
    if (next == replay.step) {
      for (const Index batch : batches) {
        const Encounter met = meet(session, batch, judges);
        replay.encounters.push_back(met);
        if (batch == next) replay.mismatch = mismatch(run, next, met.loss, met.grad_norm);
      }
    } else if (states.contains(next)) {
      replay.encounters.push_back(meet(session, replay.step, judges));
    }
    if (replay.mismatch || next == *states.rbegin()) return;
    const run::Step taken = take_step(session);
    replay.mismatch = mismatch(run, next, taken.loss, taken.norms.global);
    if (replay.mismatch) return;
    replay.retrained += 1;
  }
}

/// The own encounter first, the others as they came.
void put_own_first(SpikeReplay& replay) {
  std::ranges::stable_partition(replay.encounters, [&](const Encounter& e) {
    return e.state == replay.step && e.batch == replay.step;
  });
}

}  // namespace

Cause cause_of(Index other_batches, Index other_batches_spike, Index earlier_states,
               Index earlier_states_spike) {
  if (other_batches == 0 || earlier_states == 0) return Cause::undecided;
  const auto most = [](Index spike, Index all) { return 3 * spike >= 2 * all; };
  const auto few = [](Index spike, Index all) { return 3 * spike <= all; };
  const bool few_batches = few(other_batches_spike, other_batches);
  const bool few_states = few(earlier_states_spike, earlier_states);
  if (few_batches && few_states) return Cause::both;
  if (few_batches && most(earlier_states_spike, earlier_states)) return Cause::batch;
  if (few_states && most(other_batches_spike, other_batches)) return Cause::state;
  return Cause::undecided;
}

SpikeReplay replay_spike(const std::filesystem::path& dir, const SpikeReplayRequest& request) {
  const RecordedRun run = open_recorded(dir);
  const Index step = request.step ? *request.step : worst_spike(run);
  if (step < 1 || step > run.last_step()) {
    throw UsageError(
        fmt::format("--step {}: {} has the steps 1 to {}", step, dir.string(), run.last_step()));
  }
  std::set<Index> states = steps_around(step, request.states, run.last_step());
  states.insert(step);
  std::set<Index> batches =
      steps_around(step, request.batches, std::numeric_limits<std::int32_t>::max());
  batches.insert(step);

  const Reached reached = reach(run, *states.begin() - 1);
  SpikeReplay replay;
  replay.dir = dir;
  replay.rule = word_of(run.rule.definition);
  replay.step = step;
  replay.origin = reached.origin;
  walk(run, *reached.session, states, batches, replay);
  put_own_first(replay);
  if (!replay.mismatch) conclude(replay);
  return replay;
}

}  // namespace difftape::app
