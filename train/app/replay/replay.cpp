#include "train/app/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/error.h"
#include "train/run/loop/step.h"
#include "train/run/records/metric_registry.h"
#include "train/run/records/spike_records.h"
#include "train/system/number.h"
#include "train/system/text_table.h"

namespace difftape::app {

namespace fs = std::filesystem;

double RecordedRun::logged(const char* metric, Index step) const {
  const auto row = std::ranges::lower_bound(metrics.step, static_cast<double>(step));
  const auto column = metrics.columns.find(metric);
  throw_if<DataError>(
      row == metrics.step.end() || *row != static_cast<double>(step) ||
          column == metrics.columns.end(),
      "{}: has no {} of step {}, but must have every step of the run; restore the file",
      metrics_file().string(), metric, step);
  return column->second[row - metrics.step.begin()];
}

RecordedRun open_recorded(const fs::path& dir) {
  RecordedRun run{run::open_run(dir), {}, {}};
  run::require_precision(
      dir, run.env.value(nlohmann::ordered_json::json_pointer("/build/precision"), kRealName),
      "replay");
  run.rule = spike_rule_of(run.config.log);
  run.metrics = run::read_metrics(run.metrics_file());
  throw_if<DataError>(run.metrics.step.empty(), "{}: no step is logged yet; train the run first",
                      run.metrics_file().string());
  return run;
}

std::optional<run::DifferentMetric> mismatch(const RecordedRun& run, Index step, double loss,
                                             double grad_norm) {
  for (const auto& [name, now] : {std::pair(run::metric("train/loss"), loss),
                                  std::pair(run::metric("optim/grad_norm"), grad_norm)}) {
    const double was = run.logged(name, step);
    if (!run::same_bits(was, now)) return run::DifferentMetric{name, step, was, now};
  }
  return std::nullopt;
}

Index worst_spike(const RecordedRun& run) {
  const std::vector<run::SpikeRecord> records = spike_records(run.metrics, run.rule);
  throw_if<UsageError>(
      records.empty(),
      "{}: has no spike by its rule {}; choose a step with --step, or give a crash dump in its "
      "folder diverged",
      run.dir.string(), to_string(run.rule.definition));
  return std::ranges::max_element(records, {}, run::size_of)->step;
}

RestoredState restore_to_step(const RecordedRun& run, Index steps) {
  RestoredState restored{std::make_unique<run::TrainState>(run.config), "the initial weights"};
  for (const auto& [step, file] : run::checkpoints_in(run.checkpoints())) {
    if (step == 0 || step > steps) continue;
    restored.state->restore(file);
    restored.origin = fs::relative(file, run.dir).string();
    return restored;
  }
  run::restore_start(*restored.state, run);
  return restored;
}

namespace {

/// The spike detectors before a step, with the logged history.
struct Detectors {
  stats::SpikeDetector loss, grad;

  Detectors(const RecordedRun& run, Index before)
      : loss(run.rule), grad(run.rule, stats::SpikeSeries::grad_norm) {
    for (const double step : run.metrics.step) {
      const auto number = static_cast<Index>(step);
      if (number >= before) return;
      loss.add(run.logged(run::metric("train/loss"), number));
      grad.add(run.logged(run::metric("optim/grad_norm"), number));
    }
  }
};

ReplayTrial evaluate(run::TrainState& state, Index batch, const Detectors& detectors) {
  ReplayTrial result;
  result.state = state.step + 1;
  result.batch = batch;
  result.loss = accumulate_gradients(state, batches_of(state, batch)).loss;
  result.grad_norm = grad_norms(state.model.parameters()).global;
  result.loss_verdict = detectors.loss.judge(result.loss);
  result.grad_verdict = detectors.grad.judge(result.grad_norm);
  return result;
}

/// Returns the steps at `offsets` from `step`, within [1, last], ascending.
std::set<Index> steps_around(Index step, const std::vector<Index>& offsets, Index last) {
  std::set<Index> steps;
  for (const Index offset : offsets)
    if (offset >= 1 - step && offset <= last - step) steps.insert(step + offset);
  return steps;
}

void find_cause(SpikeReplay& replay) {
  const ReplayTrial& own = replay.trials.front();
  const auto spikes_too = [&](const ReplayTrial& other) {
    return (own.loss_verdict.spike && other.loss_verdict.spike) ||
           (own.grad_verdict.spike && other.grad_verdict.spike);
  };
  for (const ReplayTrial& other : replay.trials) {
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

/// Trains through the states and evaluates each on its batches; stops at a mismatch.
void run_trials(const RecordedRun& run, run::TrainState& state, const std::set<Index>& states,
                const std::set<Index>& batches, SpikeReplay& replay) {
  const Detectors detectors(run, replay.step);
  while (true) {
    const Index next = state.step + 1;
    if (next == replay.step) {
      for (const Index batch : batches) {
        const ReplayTrial trial = evaluate(state, batch, detectors);
        replay.trials.push_back(trial);
        if (batch == next) replay.mismatch = mismatch(run, next, trial.loss, trial.grad_norm);
      }
    } else if (states.contains(next)) {
      replay.trials.push_back(evaluate(state, replay.step, detectors));
    }
    if (replay.mismatch || next == *states.rbegin()) return;
    const run::Step taken = train_step(state);
    replay.mismatch = mismatch(run, next, taken.loss, taken.norms.global);
    if (replay.mismatch) return;
    replay.retrained += 1;
  }
}

/// Moves the trial of the step itself to the front.
void put_own_first(SpikeReplay& replay) {
  const auto own = [&](const ReplayTrial& e) {
    return e.state == replay.step && e.batch == replay.step;
  };
  std::stable_partition(replay.trials.begin(), replay.trials.end(), own);
}

}  // namespace

Cause cause_of(Index other_batches, Index other_batches_spike, Index earlier_states,
               Index earlier_states_spike) {
  if (other_batches == 0 || earlier_states == 0) return Cause::inconclusive;
  const auto most = [](Index spike, Index all) { return 3 * spike >= 2 * all; };
  const auto few = [](Index spike, Index all) { return 3 * spike <= all; };
  const bool few_batches = few(other_batches_spike, other_batches);
  const bool few_states = few(earlier_states_spike, earlier_states);
  if (few_batches && few_states) return Cause::both;
  if (few_batches && most(earlier_states_spike, earlier_states)) return Cause::batch;
  if (few_states && most(other_batches_spike, other_batches)) return Cause::state;
  return Cause::inconclusive;
}

SpikeReplay replay_spike(const std::filesystem::path& dir, const SpikeReplayRequest& request) {
  const RecordedRun run = open_recorded(dir);
  const Index step = request.step ? *request.step : worst_spike(run);
  throw_if<UsageError>(step < 1 || step > run.last_step(),
                       "--step {}: must be a step of {}, from 1 to {}", step, dir.string(),
                       run.last_step());
  std::set<Index> states = steps_around(step, request.states, run.last_step());
  states.insert(step);
  std::set<Index> batches =
      steps_around(step, request.batches, std::numeric_limits<std::int32_t>::max());
  batches.insert(step);

  request.say(fmt::format("retraining up to step {}", *states.rbegin()));
  const RestoredState restored = restore_to_step(run, *states.begin() - 1);
  SpikeReplay replay;
  replay.dir = dir;
  replay.rule = to_string(run.rule.definition);
  replay.step = step;
  replay.origin = restored.origin;
  run_trials(run, *restored.state, states, batches, replay);
  put_own_first(replay);
  if (!replay.mismatch) find_cause(replay);
  return replay;
}

namespace {

std::string deviations(double value, const stats::SpikeVerdict& verdict) {
  const double far = (value - verdict.center) / verdict.spread;
  return std::isfinite(far) ? fmt::format("{:+.1f}", far) : "-";
}

std::string spikes_of(const ReplayTrial& e) {
  if (e.loss_verdict.spike && e.grad_verdict.spike) return "loss, grad_norm";
  return e.loss_verdict.spike ? "loss" : e.grad_verdict.spike ? "grad_norm" : "-";
}

system::Table table_of(const SpikeReplay& replay) {
  system::Table table{{{"of step", "state"},
                       {"of step", "batch"},
                       {"loss", "nats"},
                       {"loss", "deviations"},
                       {"grad_norm", "L2"},
                       {"grad_norm", "deviations"},
                       {"", "spike", true}},
                      {}};
  for (const ReplayTrial& e : replay.trials) {
    table.rows.push_back({fmt::format("{}", e.state), fmt::format("{}", e.batch),
                          system::number(e.loss, "{:.4f}"), deviations(e.loss, e.loss_verdict),
                          system::number(e.grad_norm, "{:.4g}"),
                          deviations(e.grad_norm, e.grad_verdict), spikes_of(e)});
  }
  return table;
}

std::string conclusion(const SpikeReplay& replay) {
  const ReplayTrial& own = replay.trials.front();
  if (!own.loss_verdict.spike && !own.grad_verdict.spike)
    return fmt::format("inconclusive: step {} is not a spike by the rule {}", replay.step,
                       replay.rule);
  return fmt::format(
      "{}\n  {} of {} other batches on the state of step {} spike too\n"
      "  on {} of {} earlier states the batch of step {} spikes too",
      to_string(replay.cause), replay.other_batches_spike, replay.other_batches, replay.step,
      replay.earlier_states_spike, replay.earlier_states, replay.step);
}

}  // namespace

std::string to_text(const SpikeReplay& replay) {
  std::string text =
      fmt::format("{}, step {}: from {}", replay.dir.string(), replay.step, replay.origin);
  text += fmt::format(", {} step{} repeated bit for bit\n", replay.retrained,
                      replay.retrained == 1 ? "" : "s");
  if (replay.mismatch) {
    const run::DifferentMetric& m = *replay.mismatch;
    return text + fmt::format(
                      "not identical: {} of step {} is {}, but metrics.jsonl has {}; use the "
                      "build and processor of the run\n",
                      m.name, m.step, m.b, m.a);
  }
  return text + to_text(table_of(replay)) +
         "deviations refer to the window before the step, by the rule " + replay.rule + "\n" +
         "cause: " + conclusion(replay) + "\n";
}

namespace {

namespace fs = std::filesystem;

/// Data source that returns the batches of a crash dump.
class CrashDumpData : public run::FixedBatches {
 public:
  explicit CrashDumpData(const run::CrashDump& dump)
      : FixedBatches(dump.batches, dump.config.model.vocab_size), info_(dump.data) {}
  run::Batch train_batch(Index, Index micro) const override {
    return batches_.at(static_cast<std::size_t>(micro));  // throws if a damaged dump lacks some
  }
  nlohmann::ordered_json info() const override { return info_; }

 private:
  nlohmann::json info_;
};

void repeat_step(run::TrainState& state, const run::CrashDump& dump, CrashReplay& replay) {
  const run::MicroBatches batches = batches_of(state, dump.diverged.step);
  replay.numbers.push_back({"loss", dump.loss, accumulate_gradients(state, batches).loss});
  const GradNorms norms = grad_norms(state.model.parameters());
  replay.numbers.push_back({"grad_norm", dump.grad_norm, norms.global});
  std::size_t i = 0;
  for (const Parameter& parameter : state.model.parameters()) {
    replay.numbers.push_back({"grad_norm/" + parameter.name, dump.grad_norms.at(parameter.name),
                              norms.per_parameter[i++]});
  }
  replay.now.op = first_non_finite_op(state, batches);
}

void repeat_validation(run::TrainState& state, const run::CrashDump& dump, CrashReplay& replay) {
  replay.numbers.push_back({"loss", dump.loss, state.validate().loss});
  replay.now.op = first_non_finite_op_in_validation(state);
}

std::string compared(const char* what, const std::string& recorded, const std::string& now) {
  const auto shown = [](const std::string& name) { return name.empty() ? "none" : name; };
  if (now == recorded) return fmt::format("{}: {}, as recorded\n", what, shown(now));
  return fmt::format("{}: {}, but {} was recorded\n", what, shown(now), shown(recorded));
}

}  // namespace

bool CrashReplay::identical() const {
  return recorded.op == now.op && recorded.parameter == now.parameter &&
         std::ranges::all_of(numbers,
                             [](const Repeated& n) { return run::same_bits(n.recorded, n.now); });
}

CrashReplay replay_crash(const fs::path& path) {
  const run::CrashDump dump = run::read_crash_dump(path);
  run::TrainState state(dump.config, std::make_unique<CrashDumpData>(dump));
  state.restore(path);
  CrashReplay replay{path, dump.config.run.name, dump.diverged, dump.diverged, {}};
  dump.of_validation() ? repeat_validation(state, dump, replay) : repeat_step(state, dump, replay);
  const Parameter* first = first_non_finite(state.model.parameters());
  replay.now.parameter = first ? first->name : "";
  return replay;
}

std::string to_text(const CrashReplay& replay) {
  system::Table table{{{"", "", true}, {"", "recorded"}, {"", "now"}, {"", "bits", true}}, {}};
  for (const Repeated& n : replay.numbers) {
    table.rows.push_back({n.name, system::number(n.recorded, "{}"), system::number(n.now, "{}"),
                          run::same_bits(n.recorded, n.now) ? "equal" : "DIFFERENT"});
  }
  const run::Divergence& recorded = replay.recorded;
  return fmt::format(
      "{}: step {} of {}, {} was not finite\n{}{}{}{}\n", replay.path.string(), recorded.step,
      replay.run, recorded.quantity, to_text(table),
      compared("first op that is not finite", recorded.op, replay.now.op),
      compared("first parameter that is not finite", recorded.parameter, replay.now.parameter),
      replay.identical() ? "identical: the step is bitwise reproduced"
                         : "not identical; use the build and processor of the run");
}

}  // namespace difftape::app
