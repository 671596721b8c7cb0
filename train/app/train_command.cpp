#include <unistd.h>

#include <iostream>
#include <memory>

#include "train/app/commands.h"
#include "train/run/config/reader.h"
#include "train/run/loop/trainer.h"

namespace difftape::app {

Command train_command(Context& context) {
  struct Arguments {
    std::string config, out;
    std::vector<std::string> overrides;
    bool resume = false, profile = false;
  };
  auto a = std::make_shared<Arguments>();
  return {.name = "train",
          .help = "Train one model from a configuration",
          .options = {config_argument(a->config),
                      set_option(a->overrides),
                      {"--out", &a->out, "Run directory (default: run.out, or runs/<run.name>)"},
                      {"--resume", &a->resume, "Continue from the latest checkpoint of the run"},
                      {"--profile", &a->profile,
                       "Also write trace.json and profile.txt: where the time of ten steps goes"}},
          .run = [a, &context] {
            const run::Config config = run::load_config(a->config, a->overrides).config;
            run::TrainRequest request;
            request.out = a->out.empty() ? default_out(config) : std::filesystem::path(a->out);
            request.resume = a->resume;
            request.profile = a->profile;
            request.command = context.command_line;
            request.console = &std::cout;
            request.console_descriptor = STDOUT_FILENO;
            context.exit = train(config, request);
          }};
}

}  // namespace difftape::app
