#include "train/run/loop/trainer.h"

#include <fmt/format.h>

#include "train/run/loop/logged_step.h"
#include "train/run/loop/run_writer.h"
#include "train/run/loop/step_memory.h"
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

/// One step, with the validation, diagnostics, log and checkpoint that are due after it.
RunEnd step_and_log(TrainState& state, RunWriter& writer, const system::StopRequest& stop) {
  const TrainConfig& config = state.config.train;
  Step step = take_logged_step(state);
  const bool is_best = config.keep_best && !step.diverged && step.val_loss < state.best.loss;
  if (is_best) state.best = {step.step, step.val_loss};
  writer.step(state, step);
  if (step.diverged) return {system::Exit::diverged, std::move(step)};
  const Index sample_every = state.config.log.sample_every;
  if (sample_every > 0 && due(step.step, sample_every, config.steps)) writer.sample(state);
  const system::Exit signal = state.step < config.steps ? stop.received() : system::Exit::ok;
  if (signal != system::Exit::ok || is_best ||
      due(step.step, config.checkpoint_every, config.steps)) {
    writer.checkpoint(state);
  }
  return {signal};
}

system::Exit run_steps(TrainState& state, RunWriter& writer, bool profile,
                       const system::StopRequest& stop) {
  const Index steps = state.config.train.steps;
  ProfiledSteps profiled(profile, state.step, steps);
  while (state.step < steps) {
    const RunEnd end =
        profiled.run(state.step + 1, [&] { return step_and_log(state, writer, stop); });
    const bool ends = end.exit != system::Exit::ok;
    if (profiled.done_at(state.step, ends)) writer.profile(state, profiled);
    if (end.diverged) {
      writer.end_diverged(state, *end.diverged);
    } else if (ends) {
      writer.end(state, RunState::stopped, end.exit,
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
  require_memory(config, 1, system::free_memory());
  TrainState state(config);
  if (!request.resume) take_initial_weights(state);  // what is wrong with them leaves no directory
  RunWriter writer(state, request);
  const bool done = state.step == config.train.steps;
  try {
    const system::Exit exit = run_steps(state, writer, request.profile, stop);
    if (exit == system::Exit::ok) {
      const std::string where = request.out.string();
      writer.end(
          state, RunState::finished, exit,
          done ? fmt::format("{} is finished: nothing to do; --set train.steps=N trains longer",
                             where)
               : fmt::format("finished; results are in {}", where));
    }
    return exit;
  } catch (...) {
    writer.failed();
    throw;
  }
}

}  // namespace difftape::run
