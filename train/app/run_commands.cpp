// Commands of one run: `difftape train` and `difftape dump-grads`.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "core/distributed.h"
#include "train/app/commands.h"
#include "train/run/checkpoint/checkpoint.h"
#include "train/run/checkpoint/initial_settings.h"
#include "train/run/config/reader.h"
#include "train/run/loop/continuation.h"
#include "train/run/loop/grads.h"
#include "train/run/loop/step.h"
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
  std::string config, out, resume, init_from;
  std::vector<std::string> overrides;
  Index overfit_steps = 0;
  bool profile = false, overfits = false;
};

/// Sets the fields of the request about earlier steps. Only the first of several processes touches
/// the directory.
void ask_to_continue(const TrainArguments& a, const run::Config& config,
                     run::TrainRequest& request) {
  if (distributed::rank() != 0 || a.resume.empty()) return;
  request.resume = a.resume != kResumeAuto || system::is_there(request.out / "status.json");
  if (!request.resume)
    request.note = fmt::format("starting at step 1 of {}, since there is no run to resume in {}",
                               config.train.steps, request.out.string());
}

/// Adds the settings that differ from those of the initial weights to the note of the request.
void note_other_settings(const run::ResolvedConfig& resolved, run::TrainRequest& request) {
  for (const std::string& each : other_initial_settings(resolved))
    request.note += (request.note.empty() ? "" : "\n") + each;
}

/// Returns the directory to train in. A run directory given as the configuration trains in place.
std::filesystem::path directory_of(const TrainArguments& a, const run::Config& config) {
  if (!a.out.empty() && a.out != kOutAuto) return a.out;
  std::filesystem::path usual = std::filesystem::is_directory(a.config)
                                    ? std::filesystem::path(a.config)
                                    : default_out(config);
  if (a.out.empty()) return usual;
  throw_if<UsageError>(!a.resume.empty(),
                       "--out auto names a new run directory, but --resume needs an existing one; "
                       "name it with --out");
  return run::free_run_dir(usual);
}

/// Applies --init-from, which sets train.init_from.
void set_initial_weights(const TrainArguments& a, run::Config& config) {
  if (a.init_from.empty()) return;
  for (const std::string& text : a.overrides) {
    throw_if<UsageError>(
        text.starts_with("train.init_from="),
        "--init-from and --set train.init_from exclude each other; give one of them");
  }
  config.train.init_from = system::absolute_path(a.init_from);
}

void print_step(Index step, Index steps, double loss) {
  if (step != 1 && step % run::plain_interval(steps) != 0) return;
  fmt::print("step {:>4}  loss {}\n", step, system::number(loss, "{:.4f}"));
  std::fflush(stdout);
}

constexpr Index kOverfitSteps = 300;  // of --overfit by default
constexpr double kLearned = 0.01;     // loss, nats per token

/// Returns a configuration that trains on one sequence: AdamW without decay, and a learning rate
/// that falls linearly to 0 after a tenth of the steps.
run::Config learning_by_heart(run::Config config, Index steps) {
  config.data.batch_size = 1;
  config.train.gradient_accumulation_steps = 1;
  config.train.init_from.clear();
  config.train.steps = steps;
  config.optim = {.lr = 3e-3,
                  .min_lr = 0,
                  .schedule = ScheduleKind::linear,
                  .warmup_steps = steps / 10,
                  .weight_decay = 0};
  config.log.diagnostics_interval = 0;
  return config;
}

/// Returns the first sequence that begins with two different tokens. Attention to equal tokens has
/// equal values at every position, so no model can tell apart the positions of such a beginning.
run::Batch one_sequence(const run::Dataset& data) {
  constexpr Index kTries = 1000;
  run::Batch batch;
  for (Index i = 0; i < kTries; ++i) {
    batch = data.train_batch(i, 0);
    if (batch.tokens[0] != batch.tokens[1]) break;
  }
  return batch;
}

/// Trains on one sequence until the loss is below kLearned, which every correct model
/// reaches. Returns the result in one line, and true if the loss was reached.
std::pair<std::string, bool> overfit(const run::Config& config) {
  const Index steps = config.train.steps;
  const auto data = make_dataset(config.data, config.model, config.run.seed);
  run::TrainState state(config, std::make_unique<run::FixedBatches>(
                                    std::vector{one_sequence(*data)}, data->vocab_size()));
  double first = 0, lowest = 0;
  while (state.step < steps) {
    const run::Step step = train_step(state);
    if (step.step == 1) first = lowest = step.loss;
    lowest = std::min(lowest, step.loss);
    print_step(step.step, steps, step.loss);
    if (step.loss < kLearned) {
      return {
          fmt::format("learned: loss {:.4g} at step {}, below {}; {:.4f} before the first update",
                      lowest, step.step, kLearned, first),
          true};
    }
    if (step.diverged) {
      return {fmt::format("NOT LEARNED: diverged at step {}, {} is not finite", step.step,
                          step.diverged->quantity),
              false};
    }
  }
  return {fmt::format("NOT LEARNED: loss {:.4g} at best in {} steps, not below {}; {:.4f} before "
                      "the first update",
                      lowest, steps, kLearned, first),
          false};
}

system::Exit overfit_as_told(const TrainArguments& a) {
  throw_if<UsageError>(
      !a.out.empty() || !a.resume.empty() || !a.init_from.empty() || a.profile,
      "--overfit writes no run and allows no other option than --set; remove the others");
  throw_if<UsageError>(a.overfit_steps < 1,
                       "--overfit: the number of steps is 0 or less, but must be at least 1");
  throw_if<UsageError>(distributed::count() > 1,
                       "--overfit trains in one process; start it without mpirun");
  const run::Config config = run::load_config(a.config, a.overrides).config;
  const auto [found, learned] = overfit(learning_by_heart(config, a.overfit_steps));
  fmt::print("{}\n", found);
  return learned ? system::Exit::ok : system::Exit::check_failed;
}

system::Exit train_as_told(const TrainArguments& a, const Context& context) {
  if (a.overfits) return overfit_as_told(a);
  if (system::is_there(std::filesystem::path(a.config) / "env.json"))
    run::read_env(a.config);  // rejects a run of another format before its keys are read
  run::ResolvedConfig resolved = run::load_config(a.config, a.overrides);
  run::Config& config = resolved.config;
  for (const std::string& warning : run::warnings_of(config)) say("warning: " + warning);
  warn_if_slower();
  set_initial_weights(a, config);
  throw_if<UsageError>(!a.resume.empty() && a.resume != kResume && a.resume != kResumeAuto,
                       "--resume={}: expected --resume or --resume=auto; --init-from CHECKPOINT "
                       "begins a new run with the weights of a checkpoint",
                       a.resume);
  run::TrainRequest request;
  request.out = directory_of(a, config);
  outlive_reader();
  ask_to_continue(a, config, request);
  if (!request.resume) note_other_settings(resolved, request);
  request.profile = a.profile;
  request.command = context.command_line;
  request.console = &std::cout;
  // mpirun gives its processes a terminal even if its own output goes to a file.
  if (distributed::count() == 1) request.console_descriptor = STDOUT_FILENO;
  return train(config, request);
}

}  // namespace

void train_command(CLI::App& program, Context& context) {
  auto a = std::make_shared<TrainArguments>();
  CLI::App& command = add_command(
      program, "train", "Train one model from a configuration",
      {"train my.yaml", "train my.yaml --set train.steps=20 --out auto", "train runs/mine --resume",
       "train my.yaml --resume=auto", "train my.yaml --init-from runs/mine --out runs/tuned",
       "train my.yaml --overfit"});
  command.preparse_callback([](std::size_t) { distributed::join(); });
  add_config(command, a->config);
  add_set(command, a->overrides);
  add_option(command, "--out", a->out,
             "Run directory (default: run.out, or runs/<run.name>); auto picks the first unused of "
             "DIR, DIR-2, DIR-3, ...");
  command.add_flag(fmt::format("--resume{{{}}}", kResume), a->resume,
                   "Continue the run from its newest checkpoint; --resume=auto starts the run if "
                   "there is nothing to continue");
  add_option(command, "--init-from", a->init_from,
             "Start with the weights of this checkpoint or run (train.init_from)");
  command.add_flag("--profile", a->profile,
                   "Also write trace.json and profile.txt, a time profile of ten steps");
  const CLI::Option* overfit =
      command
          .add_flag(
              fmt::format("--overfit{{{}}}", kOverfitSteps), a->overfit_steps,
              "Sanity check: overfit a single sequence in this number of AdamW steps; exit code "
              "1 if the model does not learn it")
          ->check(refuse_no_index);
  command.callback([a, &context, overfit] {
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
  require_h5_output(arguments.out, "dump-grads", {"grad", "logits"},
                    {arguments.model, arguments.batch});
  const run::NamedModel named = run::open_model(arguments.model, arguments.overrides);
  const run::Batch batch = run::read_token_batch(arguments.batch);
  const run::LossAndLogits result = forward_backward(
      *named.model, batch, named.config.data.eos_token_id, precision_of(named.config));
  write_grads(arguments.out, named, batch, result);
  fmt::print(
      "loss {} {}, {} gradients: {}\n", system::number(static_cast<double>(result.loss), "{:.9g}"),
      run::loss_unit(named.config.data.type), named.model->parameters().size(), arguments.out);
}

}  // namespace

void grads_command(CLI::App& program, Context&) {
  auto a = std::make_shared<GradsArguments>();
  CLI::App& command = add_command(program, "dump-grads",
                                  "Write loss, logits and every gradient of one batch to HDF5",
                                  {"dump-grads runs/mine --batch tokens.h5 --out grads.h5"});
  add_option(command, "CONFIG_OR_CKPT", a->model,
             "Configuration (initial weights), checkpoint or run directory")
      ->required();
  add_option(command, "--batch", a->batch,
             "HDF5 file with int32 /tokens: one row of T inputs and the last target per sequence")
      ->required();
  add_option(command, "--out", a->out, "HDF5 file to write")->required();
  add_set(command, a->overrides);
  command.callback([a] { write_grads_of(*a); });
}

}  // namespace difftape::app
