#include <unistd.h>

#include <iostream>
#include <memory>

#include "train/app/commands.h"
#include "train/run/config/reader.h"
#include "train/run/loop/trainer.h"

namespace difftape::app {

void add_train(CLI::App& app, Context& context) {
  struct Arguments {
    std::string config, out;
    std::vector<std::string> overrides;
    bool resume = false, profile = false;
  };
  CLI::App* command = app.add_subcommand("train", "Train one model from a configuration");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("CONFIG", arguments->config, "Configuration file (YAML)")->required();
  add_set_option(*command, arguments->overrides);
  command->add_option("--out", arguments->out,
                      "Run directory (default: run.out, or runs/<run.name>)");
  command->add_flag("--resume", arguments->resume,
                    "Continue from the latest checkpoint of the run");
  command->add_flag("--profile", arguments->profile,
                    "Also write trace.json and profile.txt: where the time of ten steps goes");
  command->callback([arguments, &context] {
    const run::Config config = run::load_config(arguments->config, arguments->overrides).config;
    run::TrainRequest request;
    request.out =
        arguments->out.empty() ? default_out(config) : std::filesystem::path(arguments->out);
    request.resume = arguments->resume;
    request.profile = arguments->profile;
    request.command = context.command_line;
    request.console = &std::cout;
    request.console_descriptor = STDOUT_FILENO;
    context.exit = train(config, request);
  });
}

}  // namespace difftape::app
