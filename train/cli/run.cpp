#include <fmt/core.h>

#include <cstdio>
#include <new>

#include "core/build_info.h"
#include "train/cli/commands.h"

namespace difftape::cli {

namespace {

constexpr const char* kFooter =
    "Start with:  difftape sweep configs/quickstart.yaml\n\n"
    "Exit codes: 0 ok; 1 a check failed; 64 usage; 65 bad data or checkpoint; 66 input missing;\n"
    "74 cannot write; 75 stopped early, resumable; 78 config error; 86 training diverged (recorded\n"
    "as a result); 130/143 after SIGINT/SIGTERM, with a checkpoint written.";

int fail(Exit exit, const char* message) {
  fmt::print(stderr, "difftape: {}\n", message);
  return static_cast<int>(exit);
}

}  // namespace

int run(int argc, char** argv) {
  CLI::App app("difftape: find out which attention mechanism trains stably", "difftape");
  app.footer(kFooter);
  app.require_subcommand(1);
  const BuildInfo build = build_info();
  app.set_version_flag("--version", fmt::format("difftape {} ({}, {}, {})", build.version,
                                                build.commit, build.precision, build.compiler));
  Context context{{argv, argv + argc}};
  for (auto add : {add_train, add_sweep, add_report, add_plan, add_config, add_grads, add_gradcheck,
                   add_doctor}) {
    add(app, context);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(Exit::usage);
  } catch (const Error& error) {
    return fail(error.exit(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(Exit::bad_data, "out of memory; `difftape plan CONFIG` says what a run needs");
  } catch (const std::exception& error) {
    return fail(Exit::bad_data, error.what());
  }
  std::fflush(stdout);
  return static_cast<int>(context.exit);
}

}  // namespace difftape::cli
