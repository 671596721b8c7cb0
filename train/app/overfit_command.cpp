// The command that asks whether a model can learn at all: one batch by heart.
#include <fmt/core.h>

#include <memory>

#include "train/app/commands.h"
#include "train/run/config/reader.h"
#include "train/run/loop/overfit.h"
#include "train/run/records/progress.h"
#include "train/system/number.h"

namespace difftape::app {

namespace {

struct OverfitArguments {
  std::string config;
  std::vector<std::string> overrides;
  run::OverfitRequest request;
};

void print_step(Index step, Index steps, double loss) {
  if (step != 1 && step % run::plain_interval(steps) != 0) return;
  fmt::print("step {:>4}  loss {:.4f}\n", step, system::shown(loss));
  std::fflush(stdout);
}

/// What was found, in one line.
std::string verdict(const run::Overfit& found, const run::OverfitRequest& request) {
  if (found.reached) {
    return fmt::format("learned: loss {:.4g} at step {}, below {}; {:.4f} before the first update",
                       found.lowest, found.step, request.target, found.first);
  }
  if (found.diverged) {
    return fmt::format("NOT LEARNED: diverged at step {}, {} is not finite", found.step,
                       found.diverged->quantity);
  }
  return fmt::format(
      "NOT LEARNED: loss {:.4g} at best in {} steps, not below {}; {:.4f} before the first update",
      found.lowest, found.step, request.target, found.first);
}

system::Exit overfit_as_told(const OverfitArguments& a) {
  if (a.request.steps < 1 || a.request.sequences < 1 || !(a.request.target > 0))
    throw UsageError("overfit: --steps, --sequences and --loss need numbers above 0");
  const run::Config config = run::load_config(a.config, a.overrides).config;
  const run::Overfit found = run::overfit(
      config, a.request, [&](Index step, double loss) { print_step(step, a.request.steps, loss); });
  fmt::print("{}\n", verdict(found, a.request));
  return found.reached ? system::Exit::ok : system::Exit::check_failed;
}

}  // namespace

Command overfit_command(Context& context) {
  auto a = std::make_shared<OverfitArguments>();
  run::OverfitRequest& request = a->request;
  return {.name = "overfit",
          .help =
              "Check that a model can learn: one batch by heart, with AdamW. Exit code 0: it "
              "did; 1: it did not",
          .options = {config_argument(a->config),
                      set_option(a->overrides),
                      {.name = "--steps",
                       .target = &request.steps,
                       .help = "Steps it may take",
                       .show_default = true},
                      {.name = "--loss",
                       .target = &request.target,
                       .help = "Nats per token below which the batch counts as learned",
                       .show_default = true},
                      {.name = "--sequences",
                       .target = &request.sequences,
                       .help = "Sequences of the batch",
                       .show_default = true}},
          .run = [a, &context] { context.exit = overfit_as_told(*a); },
          .examples = {"overfit my.yaml", "overfit my.yaml --sequences 2 --loss 0.5"}};
}

}  // namespace difftape::app
