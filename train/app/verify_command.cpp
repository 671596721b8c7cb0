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

Command verify_command(Context& context) {
  auto a = std::make_shared<VerifyArguments>();
  a->request.say = say;
  return {.name = "verify",
          .help = "Train a run again, and name the first step and tensor that differs in any bit",
          .options = {{.name = "RUN", .target = &a->run, .help = "Run directory", .required = true},
                      list_option("--threads", &a->request.threads,
                                  "Train it once with each of these numbers of threads, separated "
                                  "by commas (default: once)"),
                      {"--from", &a->request.from,
                       "Begin at the latest checkpoint up to this step (default: at the start)"}},
          .run =
              [a, &context] {
                const Verification found = verify_run(a->run, a->request);
                fmt::print("{}", to_text(found));
                if (!found.equal()) context.exit = system::Exit::check_failed;
              },
          .examples = {"verify runs/mine", "verify runs/mine --threads 1,2 --from 6"}};
}

}  // namespace difftape::app
