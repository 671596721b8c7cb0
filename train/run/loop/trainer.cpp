#include "train/run/loop/trainer.h"

#include <cmath>

#include "train/run/loop/dump.h"
#include "train/run/loop/first_non_finite.h"
#include "train/run/loop/run_writer.h"
#include "train/run/loop/stop.h"

namespace difftape::run {

namespace {

/// Why a run ends before its last step.
struct Ending {
  system::Exit exit = system::Exit::ok;  ///< ok: it does not
  std::optional<Step> diverged = {};
};

/// One step with all that is due after it.
Ending advance(Session& session, RunWriter& writer, const StopRequest& stop) {
  const TrainConfig& config = session.config.train;
  Step step = take_step(session);
  if (!step.diverged && due(step.number, config.eval_every, config.steps)) {
    Validation validation = session.validate();
    step.val_loss = validation.loss;
    step.val_metrics = std::move(validation.metrics);
    if (!std::isfinite(step.val_loss)) {
      const Parameter* first = first_non_finite(session.model.parameters());
      step.diverged = {step.number, kValLoss, first ? first->name : "",
                       first_non_finite_op_in_validation(session)};
    }
  }
  if (step.diverged || diagnoses(session.config, step.number))
    step.diagnostics = session.diagnose();
  writer.step(session, step);
  if (step.diverged) return {system::Exit::diverged, std::move(step)};
  const system::Exit signal = session.step < config.steps ? stop.received() : system::Exit::ok;
  if (signal != system::Exit::ok || due(step.number, config.checkpoint_every, config.steps)) {
    writer.checkpoint(session);
  }
  return {signal};
}

system::Exit run_steps(Session& session, RunWriter& writer, bool profile, const StopRequest& stop) {
  const Index steps = session.config.train.steps;
  ProfiledSteps profiled(profile, session.step, steps);
  while (session.step < steps) {
    const Ending ending =
        profiled.run(session.step + 1, [&] { return advance(session, writer, stop); });
    const bool ends = ending.exit != system::Exit::ok;
    if (profiled.done_at(session.step, ends)) writer.profile(session, profiled);
    if (ending.diverged) {
      writer.end_diverged(session, *ending.diverged);
    } else if (ends) {
      writer.end(session, RunState::stopped, ending.exit,
                 fmt::format("stopped at step {}; continue with --resume", session.step));
    }
    if (ends) return ending.exit;
  }
  return system::Exit::ok;
}

}  // namespace

std::filesystem::path default_out(const Config& config) {
  return config.run.out.empty() ? std::filesystem::path("runs") / config.run.name
                                : std::filesystem::path(config.run.out);
}

system::Exit train(const Config& config, const TrainRequest& request) {
  const StopRequest stop;  // from here on a signal costs no work
  Session session(config);
  RunWriter writer(session, request);
  try {
    const system::Exit exit = run_steps(session, writer, request.profile, stop);
    if (exit == system::Exit::ok) {
      writer.end(session, RunState::finished, exit,
                 fmt::format("finished; results are in {}", request.out.string()));
    }
    return exit;
  } catch (...) {
    writer.failed();
    throw;
  }
}

}  // namespace difftape::run
