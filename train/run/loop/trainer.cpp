#include "train/run/loop/trainer.h"

#include <fmt/format.h>

#include "core/processes.h"
#include "train/run/loop/logged_step.h"
#include "train/run/loop/run_writer.h"
#include "train/run/loop/step_memory.h"
#include "train/run/loop/together.h"
#include "train/run/loop/train_state.h"
#include "train/run/records/run_files.h"
#include "train/system/exit.h"
#include "train/system/memory.h"

namespace difftape::run {

namespace {

/// Whether and why a run ends before its last step.
struct RunEnd {
  system::Exit exit = system::Exit::ok;  ///< ok: it goes on
  std::optional<Step> diverged = {};
};

/// One step, with the validation, diagnostics, log and checkpoint that are due after it. No writer:
/// another process writes.
RunEnd step_and_log(TrainState& state, RunWriter* writer, const system::StopRequest& stop) {
  const TrainConfig& config = state.config.train;
  Step step = take_logged_step(state);
  const bool is_best = config.keep_best && !step.diverged && step.val_loss < state.best.loss;
  if (is_best) state.best = {step.step, step.val_loss};
  const system::Exit signal =
      state.step < config.steps ? received_by_any(stop.received()) : system::Exit::ok;
  const bool saves = !step.diverged && (signal != system::Exit::ok || is_best ||
                                        due(step.step, config.checkpoint_interval, config.steps));
  const WholeOptimizer whole(state.optimizer, saves || state.config.log.digest);
  if (writer) {
    writer->step(state, step);
    const Index sample_interval = state.config.log.sample_interval;
    const bool samples = sample_interval > 0 && due(step.step, sample_interval, config.steps);
    if (samples && !step.diverged) writer->sample(state);
    if (saves) writer->checkpoint(state);
  }
  if (step.diverged) return {system::Exit::diverged, std::move(step)};
  return {signal};
}

system::Exit run_steps(TrainState& state, RunWriter* writer, bool profile,
                       const system::StopRequest& stop) {
  const Index steps = state.config.train.steps;
  ProfiledSteps profiled(profile, state.step, steps);
  while (state.step < steps) {
    const RunEnd end =
        profiled.run(state.step + 1, [&] { return step_and_log(state, writer, stop); });
    const bool ends = end.exit != system::Exit::ok;
    const WholeOptimizer whole(state.optimizer, end.diverged.has_value());
    if (writer && profiled.done_at(state.step, ends)) writer->profile(state, profiled);
    if (writer && end.diverged) {
      writer->end_diverged(state, *end.diverged);
    } else if (writer && ends) {
      writer->end(state, RunState::stopped, end.exit,
                  fmt::format("stopped at step {}; continue with --resume", state.step));
    }
    if (ends) return end.exit;
  }
  return system::Exit::ok;
}

}  // namespace

std::filesystem::path default_out(const Config& config) {
  return config.run.out.empty() ? std::filesystem::path("runs") / config.run.name
                                : std::filesystem::path(config.run.out);
}

bool has_run_to_resume(const std::filesystem::path& dir) {
  if (is_partial_start(dir)) remove_partial_start(dir);
  std::error_code error;
  return std::filesystem::exists(dir / "status.json", error);
}

system::Exit train(const Config& config, const TrainRequest& request) {
  const system::StopRequest stop;  // from here on a signal loses no step
  require_shares(config, processes::count());
  require_memory(config, processes::on_this_machine(), system::free_memory());
  TrainState state(config);
  processes::ready();
  require_same(state);
  std::unique_ptr<RunWriter> writer;
  state.optimizer.gather();
  if (processes::rank() == 0) {
    if (!request.resume)
      take_initial_weights(state);  // what is wrong with them leaves no directory
    writer = std::make_unique<RunWriter>(state, request);
  }
  const bool done = state.step == config.train.steps;
  try {
    state.scatter();
    const system::Exit exit = run_steps(state, writer.get(), request.profile, stop);
    if (writer && exit == system::Exit::ok) writer->end_finished(state, done);
    return exit;
  } catch (...) {
    if (writer) writer->failed();
    throw;
  }
}

}  // namespace difftape::run
