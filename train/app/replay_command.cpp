
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
  bool asked_for_run = false;  ///< an option that only a run directory has was given
};

bool replay_run(const ReplayArguments& arguments) {
  const SpikeReplay replay = replay_spike(arguments.where, arguments.request);
  fmt::print("{}", to_text(replay));
  return !replay.mismatch;
}

bool replay_file(const ReplayArguments& arguments) {
  throw_if<UsageError>(arguments.asked_for_run,
                       "--step, --batches and --states need a run directory; {} is none",
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
      program, "replay",
      "Repeat a step bit for bit: a divergence, or a spike with other batches and states",
      {"replay runs/mine --step 8", "replay runs/diverged/diverged/step-00000002.h5"});
  add_option(command, "CRASH_DUMP_OR_RUN", a->where,
             "The crash dump of a divergence (RUN/diverged/step-....h5), or a run directory")
      ->required();
  const CLI::Option* of_run[] = {
      add_option(command, "--step", a->request.step,
                 "The step of the run (default: where its worst spike begins)"),
      add_list(command, "--batches", a->request.batches,
               "Steps away from it whose batches are run from its state, separated by commas"),
      add_list(command, "--states", a->request.states,
               "Steps away from it whose states are run with its batch, separated by commas")};
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
  CLI::App& command =
      add_command(program, "verify",
                  "Train a run again, and name the first step and tensor that differs in any bit",
                  {"verify runs/mine", "verify runs/mine --threads 1,2 --from 6"});
  add_option(command, "RUN", a->run, "Run directory")->required();
  add_list(command, "--threads", a->request.threads,
           "Train it once with each of these numbers of threads, separated by commas (default: "
           "once)");
  add_option(command, "--from", a->request.from,
             "Begin at the latest checkpoint up to this step (default: at the start)");
  command.callback([a, &context] {
    const Verification found = verify_run(a->run, a->request);
    fmt::print("{}", to_text(found));
    if (!found.equal()) context.exit = system::Exit::check_failed;
  });
}

}  // namespace difftape::app
