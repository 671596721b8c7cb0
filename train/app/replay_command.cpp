
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <memory>

#include "train/app/commands.h"
#include "train/app/replay/replay.h"
#include "train/app/replay/verify.h"

namespace difftape::app {
namespace {

struct ReplayArguments {
  std::string where;
  SpikeReplayRequest request;
  bool asked_for_run = false;  ///< whether an option that needs a run directory was given
};

bool replay_run(const ReplayArguments& arguments) {
  const SpikeReplay replay = replay_spike(arguments.where, arguments.request);
  fmt::print("{}", to_text(replay));
  return !replay.mismatch;
}

bool replay_file(const ReplayArguments& arguments) {
  throw_if<UsageError>(
      arguments.asked_for_run,
      "--step, --batches and --states need a run directory, but {} is not one; remove them",
      arguments.where);
  const CrashReplay replay = replay_crash(arguments.where);
  fmt::print("{}", to_text(replay));
  return replay.identical();
}

}  // namespace

void replay_command(CLI::App& program, Context& context) {
  auto a = std::make_shared<ReplayArguments>();
  a->request.say = say;
  CLI::App& command = add_command(
      program, "replay", "Replay a divergence, or a spike with other batches and states",
      {"replay runs/mine --step 8", "replay runs/diverged/diverged/step-00000002.h5"});
  add_option(command, "CRASH_DUMP_OR_RUN", a->where,
             "Crash dump of a divergence (RUN/diverged/step-....h5), or run directory")
      ->required();
  const CLI::Option* of_run[] = {
      add_option(command, "--step", a->request.step,
                 "Step to replay (default: the start of the worst spike)"),
      add_list(command, "--batches", a->request.batches,
               "Offsets of the batches to run from the state of that step, separated by commas"),
      add_list(command, "--states", a->request.states,
               "Offsets of the states to run with the batch of that step, separated by commas")};
  command.callback([a, &context, options = std::to_array(of_run)] {
    a->asked_for_run =
        std::ranges::any_of(options, [](const CLI::Option* each) { return each->count() > 0; });
    const bool same = std::filesystem::is_directory(a->where) ? replay_run(*a) : replay_file(*a);
    context.exit = same ? system::Exit::ok : system::Exit::check_failed;
  });
}

namespace {

struct VerifyArguments {
  std::string run;
  VerifyRequest request;
};

}  // namespace

void verify_command(CLI::App& program, Context& context) {
  auto a = std::make_shared<VerifyArguments>();
  a->request.say = say;
  CLI::App& command = add_command(program, "verify", "Train a run again and compare every bit",
                                  {"verify runs/mine", "verify runs/mine --threads 1,2 --from 6"});
  add_option(command, "RUN", a->run, "Run directory")->required();
  add_list(
      command, "--threads", a->request.threads,
      "Thread counts to train with, separated by commas (default: the current number of threads)");
  add_option(command, "--from", a->request.from,
             "Start at the latest checkpoint up to this step (default: the first step)");
  command.callback([a, &context] {
    const Verification found = verify_run(a->run, a->request);
    fmt::print("{}", to_text(found));
    if (!found.equal()) context.exit = system::Exit::check_failed;
  });
}

}  // namespace difftape::app
