#include <fmt/core.h>

#include <memory>

#include "train/app/commands.h"
#include "train/app/replay/crash_replay.h"
#include "train/app/replay/spike_replay.h"

namespace difftape::app {

namespace {

struct ReplayArguments {
  std::string where;
  SpikeReplayRequest request;
  bool asked_for_run = false;  ///< an option that only a run directory has was given
};

bool replay_run(const ReplayArguments& arguments) {
  const SpikeReplay replay = replay_spike(arguments.where, arguments.request);
  fmt::print("{}", to_text(replay));
  return !replay.mismatch;
}

bool replay_file(const ReplayArguments& arguments) {
  if (arguments.asked_for_run) {
    throw UsageError(fmt::format("--step, --batches and --states need a run directory; {} is none",
                                 arguments.where));
  }
  const CrashReplay replay = replay_crash(arguments.where);
  fmt::print("{}", to_text(replay));
  return replay.identical();
}

std::vector<Option> options_of(ReplayArguments& a) {
  Option batches =
      list_option("--batches", &a.request.batches,
                  "Steps away from it whose batches are run from its state, separated by commas");
  Option states =
      list_option("--states", &a.request.states,
                  "Steps away from it whose states are run with its batch, separated by commas");
  batches.given = states.given = &a.asked_for_run;
  return {{.name = "CRASH_DUMP_OR_RUN",
           .target = &a.where,
           .help = "The crash dump of a divergence (RUN/diverged/step-....h5), or a run directory",
           .required = true},
          {.name = "--step",
           .target = &a.request.step,
           .help = "The step of the run (default: where its worst spike begins)",
           .given = &a.asked_for_run},
          batches,
          states};
}

}  // namespace

Command replay_command(Context& context) {
  auto a = std::make_shared<ReplayArguments>();
  a->request.say = say;
  return {
      .name = "replay",
      .help = "Repeat a step bit for bit: a divergence, or a spike with other batches and states",
      .options = options_of(*a),
      .run =
          [a, &context] {
            const bool same =
                std::filesystem::is_directory(a->where) ? replay_run(*a) : replay_file(*a);
            context.exit = same ? system::Exit::ok : system::Exit::check_failed;
          },
      .examples = {"replay runs/mine --step 8", "replay runs/diverged/diverged/step-00000002.h5"}};
}

}  // namespace difftape::app
