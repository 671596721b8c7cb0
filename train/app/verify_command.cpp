// `difftape verify`: a run trained again and compared bit for bit.
#include <fmt/core.h>

#include <memory>

#include "train/app/commands.h"
#include "train/app/replay/verify.h"

namespace difftape::app {

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
