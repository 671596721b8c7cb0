// Commands about one run: train it, write the gradients of a batch.
#include <fmt/core.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <optional>

#include "core/processes.h"
#include "train/app/commands.h"
#include "train/run/checkpoint/checkpoint.h"
#include "train/run/config/reader.h"
#include "train/run/loop/continuation.h"
#include "train/run/loop/grads.h"
#include "train/run/loop/overfit.h"
#include "train/run/loop/train_state.h"
#include "train/run/loop/trainer.h"
#include "train/run/records/progress.h"
#include "train/run/records/run_files.h"
#include "train/system/files.h"
#include "train/system/number.h"

namespace difftape::app {
namespace {

constexpr const char* kResume = "latest";
constexpr const char* kResumeAuto = "auto";

struct TrainArguments {
  std::string config, out, resume, fork;
  std::vector<std::string> overrides;
  Index overfit_steps = 0;
  bool forks = false, profile = false, overfits = false;
};

/// Of --resume=CHECKPOINT: the file that is meant; nothing of other words.
std::optional<std::filesystem::path> checkpoint_to_resume(const std::string& resume) {
  if (resume.empty() || resume == kResume || resume == kResumeAuto) return std::nullopt;
  if (run::names_checkpoint(resume)) return run::find_checkpoint(resume);
  throw UsageError(
      fmt::format("--resume={}: need --resume, or --resume=auto, which starts the run or continues "
                  "it, whichever it needs, or --resume=CHECKPOINT",
                  resume));
}

/// Says in the request what --resume means for a run that goes to its directory. Of processes that
/// train together the first has the directory.
void ask_to_resume(const std::string& resume, const run::Config& config,
                   run::TrainRequest& request) {
  if (processes::rank() != 0 || resume.empty()) return;
  if (const auto checkpoint = checkpoint_to_resume(resume)) {
    branch_run(*checkpoint, config, request.out);
    request.note = fmt::format("the steps before are those of {}", checkpoint->string());
  }
  request.resume = resume != kResumeAuto || run::has_run_to_resume(request.out);
  if (!request.resume)
    request.note = fmt::format("begins before step 1 of {}: there is no run to continue in {}",
                               config.train.steps, request.out.string());
}

/// A run directory is a configuration of its own, and trains where it is.
std::filesystem::path directory_of(const TrainArguments& a, const run::Config& config) {
  if (!a.out.empty() && a.out != kOutAuto) return a.out;
  const std::filesystem::path usual = std::filesystem::is_directory(a.config)
                                          ? std::filesystem::path(a.config)
                                          : default_out(config);
  const bool branches = checkpoint_to_resume(a.resume).has_value();
  throw_if<UsageError>(
      branches && a.out.empty(),
      "--resume={}: goes on in a directory of its own, the run of the checkpoint stays as it is; "
      "say where with --out",
      a.resume);
  if (a.out.empty()) return usual;
  throw_if<UsageError>(
      !a.resume.empty() && !branches,
      "--out auto is a directory of a new run; --resume needs that of the old one");
  return run::free_run_dir(usual);
}

/// --fork is train.init_from in other words.
void fork(const TrainArguments& a, run::Config& config) {
  if (!a.forks) return;
  throw_if<UsageError>(a.fork.empty(), "--fork: need a checkpoint or a run directory");
  for (const std::string& text : a.overrides) {
    throw_if<UsageError>(text.starts_with("train.init_from="),
                         "--fork and --set train.init_from say the same; give one of them");
  }
  config.train.init_from = system::absolute_path(a.fork);
}

void print_step(Index step, Index steps, double loss) {
  if (step != 1 && step % run::plain_interval(steps) != 0) return;
  fmt::print("step {:>4}  loss {:.4f}\n", step, system::shown(loss));
  std::fflush(stdout);
}

/// Of --overfit: what was found, in one line.
std::string verdict(const run::Overfit& found, double target) {
  if (found.reached) {
    return fmt::format("learned: loss {:.4g} at step {}, below {}; {:.4f} before the first update",
                       found.lowest, found.step, target, found.first);
  }
  if (found.diverged) {
    return fmt::format("NOT LEARNED: diverged at step {}, {} is not finite", found.step,
                       found.diverged->quantity);
  }
  return fmt::format(
      "NOT LEARNED: loss {:.4g} at best in {} steps, not below {}; {:.4f} before the first update",
      found.lowest, found.step, target, found.first);
}

system::Exit overfit_as_told(const TrainArguments& a) {
  throw_if<UsageError>(!a.out.empty() || !a.resume.empty() || a.forks || a.profile,
                       "--overfit leaves nothing behind; give it alone, with --set");
  run::OverfitRequest request;
  request.steps = a.overfit_steps;
  throw_if<UsageError>(request.steps < 1, "--overfit: need a number of steps above 0");
  const run::Config config = run::load_config(a.config, a.overrides).config;
  const run::Overfit found = run::overfit(
      config, request, [&](Index step, double loss) { print_step(step, request.steps, loss); });
  fmt::print("{}\n", verdict(found, request.target));
  return found.reached ? system::Exit::ok : system::Exit::check_failed;
}

system::Exit train_as_told(const TrainArguments& a, const Context& context) {
  if (a.overfits) return overfit_as_told(a);
  if (system::is_there(std::filesystem::path(a.config) / "env.json"))
    run::read_env(a.config);  // refuses a run of another format by name, before its keys are read
  run::Config config = run::load_config(a.config, a.overrides).config;
  fork(a, config);
  run::TrainRequest request;
  request.out = directory_of(a, config);
  outlive_reader();
  ask_to_resume(a.resume, config, request);
  request.profile = a.profile;
  request.command = context.command_line;
  request.console = &std::cout;
  request.console_descriptor = STDOUT_FILENO;
  return train(config, request);
}

}  // namespace

void train_command(CLI::App& program, Context& context) {
  auto a = std::make_shared<TrainArguments>();
  CLI::App& command =
      add_command(program, "train", "Train one model from a configuration",
                  {"train my.yaml", "train my.yaml --set train.steps=20 --out auto",
                   "train my.yaml --resume=auto",
                   "train my.yaml --fork runs/mine --out runs/forked", "train my.yaml --overfit"});
  command.preparse_callback([](std::size_t) { processes::join(); });
  add_config(command, a->config);
  add_set(command, a->overrides);
  add_option(command, "--out", a->out,
             "Run directory (default: run.out, or runs/<run.name>); auto: the first of that, "
             "that-2, that-3, ... that is free");
  command.add_flag(fmt::format("--resume{{{}}}", kResume), a->resume,
                   "Continue from the latest checkpoint of the run; --resume=auto: start it if "
                   "there is none; --resume=CHECKPOINT: go on from there in a new directory, "
                   "--out");
  const CLI::Option* fork =
      add_option(command, "--fork", a->fork,
                 "Begin with the weights of this checkpoint or run (train.init_from)");
  command.add_flag("--profile", a->profile,
                   "Also write trace.json and profile.txt: where the time of ten steps goes");
  const CLI::Option* overfit =
      command
          .add_flag(fmt::format("--overfit{{{}}}", run::OverfitRequest{}.steps), a->overfit_steps,
                    "Only check that the model can learn: one sequence by heart, with AdamW; "
                    "--overfit=STEPS: in so many. Exit code 0: it did; 1: it did not")
          ->check(refuse_no_index);
  command.callback([a, &context, fork, overfit] {
    a->forks = fork->count() > 0;
    a->overfits = overfit->count() > 0;
    context.exit = train_as_told(*a, context);
  });
}

namespace {

struct GradsArguments {
  std::string model, batch, out;
  std::vector<std::string> overrides;
};

void write_grads_of(const GradsArguments& arguments) {
  require_h5_output(arguments.out, "grads", {"grad", "logits"}, {arguments.model, arguments.batch});
  const run::NamedModel named = run::open_model(arguments.model, arguments.overrides);
  const run::Batch batch = run::read_token_batch(arguments.batch);
  const run::LossAndLogits result = forward_backward(
      *named.model, batch, named.config.data.eos_token_id, precision_of(named.config));
  write_grads(arguments.out, named, batch, result);
  fmt::print("loss {:.9g} nats per token, {} gradients: {}\n",
             system::shown(static_cast<double>(result.loss)), named.model->parameters().size(),
             arguments.out);
}

}  // namespace

void grads_command(CLI::App& program, Context&) {
  auto a = std::make_shared<GradsArguments>();
  CLI::App& command = add_command(
      program, "grads", "Write loss, logits and every gradient of a batch, for other frameworks",
      {"grads runs/mine --batch tokens.h5 --out grads.h5"});
  add_option(command, "CONFIG_OR_CKPT", a->model,
             "Configuration (initial weights), checkpoint or run directory")
      ->required();
  add_option(command, "--batch", a->batch, "HDF5 file with /tokens, int32 (B, T + 1)")->required();
  add_option(command, "--out", a->out, "HDF5 file to write")->required();
  add_set(command, a->overrides);
  command.callback([a] { write_grads_of(*a); });
}

}  // namespace difftape::app
