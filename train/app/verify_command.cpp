// `difftape verify`: trains a run again and compares every bit.
#include <fmt/core.h>

#include <memory>

#include "train/app/commands.h"
#include "train/app/verify.h"

namespace difftape::app {

void verify_command(CLI::App& program, Context& context) {
  struct Arguments {
    std::string run;
    std::vector<Index> threads;
  };
  auto a = std::make_shared<Arguments>();
  CLI::App& command = add_command(program, "verify", "Train a run again and compare every bit",
                                  {"verify runs/mine", "verify runs/mine --threads 1,2"});
  add_option(command, "RUN", a->run, "Run directory")->required();
  add_list(
      command, "--threads", a->threads,
      "Thread counts to train with, separated by commas (default: the current number of threads)");
  command.callback([a, &context] {
    const Verification found = verify_run(a->run, a->threads, say);
    fmt::print("{}", to_text(found));
    if (!found.equal()) context.exit = system::Exit::check_failed;
  });
}

}  // namespace difftape::app
