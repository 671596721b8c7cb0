#include <fmt/core.h>

#include <memory>

#include "train/app/commands.h"
#include "train/app/replay/crash_replay.h"
#include "train/app/replay/spike_replay.h"

namespace difftape::app {

namespace {

struct Arguments {
  std::string where;
  Index step = 0;
  SpikeReplayRequest request;
};

bool replay_run(Arguments& arguments, bool step_given) {
  if (step_given) arguments.request.step = arguments.step;
  const SpikeReplay replay = replay_spike(arguments.where, arguments.request);
  fmt::print("{}", to_text(replay));
  return !replay.mismatch;
}

bool replay_file(const Arguments& arguments, bool asked_for_run) {
  if (asked_for_run) {
    throw UsageError(fmt::format("--step, --batches and --states need a run directory; {} is none",
                                 arguments.where));
  }
  const CrashReplay replay = replay_crash(arguments.where);
  fmt::print("{}", to_text(replay));
  return replay.identical();
}

}  // namespace

void add_replay(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "replay",
      "Repeat a step bit for bit: a divergence, or a spike with other batches and states");
  auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("DUMP_OR_RUN", arguments->where,
                   "The dump of a divergence (RUN/diverged/step-....h5), or a run directory")
      ->required();
  CLI::Option* step = command->add_option(
      "--step", arguments->step, "The step of the run (default: where its worst spike begins)");
  CLI::Option* batches =
      add_list_option(*command, "--batches", arguments->request.batches,
                      "Steps away from it whose batches meet its state, separated by commas");
  CLI::Option* states =
      add_list_option(*command, "--states", arguments->request.states,
                      "Steps away from it whose states meet its batch, separated by commas");
  command->callback([arguments, step, batches, states, &context] {
    const bool same =
        std::filesystem::is_directory(arguments->where)
            ? replay_run(*arguments, step->count() > 0)
            : replay_file(*arguments, step->count() + batches->count() + states->count() > 0);
    context.exit = same ? system::Exit::ok : system::Exit::check_failed;
  });
}

}  // namespace difftape::app
