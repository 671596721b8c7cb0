#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <new>

#include "core/build_info.h"
#include "core/gemm.h"
#include "train/app/commands.h"
#include "train/system/suggest.h"

namespace difftape::app {

namespace {

constexpr const char* kFooter =
    "Start with:  difftape sweep configs/sweeps/quickstart.yaml\n\n"
    "Exit codes: 0 ok; 1 a check failed; 64 usage; 65 bad data or checkpoint; 66 input missing;\n"
    "74 cannot write; 75 stopped early, resumable; 78 config error; 86 training diverged,\n"
    "recorded as a result; 130/143 after SIGINT/SIGTERM, with a checkpoint written.";

int fail(system::Exit exit, std::string_view message) {
  // Errors of a configuration begin with file:line:column, which editors and terminals follow.
  const std::string text =
      fmt::format("{}{}\n", exit == system::Exit::config ? "" : "difftape: ", message);
  std::fputs(text.c_str(), stderr);  // throws nothing, wherever it goes
  return static_cast<int>(exit);
}

/// The next file that is opened would get the number of a closed standard stream, and with it what
/// is meant for the console.
void open_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) == -1) static_cast<void>(open("/dev/null", O_RDWR));
  }
}

/// What is wrong with a command, in words that name it: CLI11 only counts what it does not know.
std::string usage_problem(CLI::App& command, const CLI::ParseError& error) {
  std::vector<std::string> commands, options;
  for (const CLI::App* sub : command.get_subcommands(nullptr)) {
    if (!sub->get_group().empty()) commands.push_back(sub->get_name());
  }
  for (const CLI::Option* option : command.get_options()) options.push_back(option->get_name());
  const std::vector<std::string> unknown = command.remaining();
  if (unknown.empty()) {
    return commands.empty() ? error.what()
                            : fmt::format("give a command: {}", fmt::join(commands, ", "));
  }
  const std::string& word = unknown.front();
  if (word.starts_with('-')) {
    return fmt::format("unknown option '{}'{}", word, system::did_you_mean(word, options));
  }
  if (!commands.empty()) {
    return fmt::format("unknown command '{}'{}", word, system::did_you_mean(word, commands));
  }
  return fmt::format("one argument too many: '{}'", word);
}

/// What is wrong with the command line, and where to read more.
int explain(CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
  CLI::App* command = &app;
  std::string name = app.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  return fail(system::Exit::usage,
              fmt::format("{}\n'{} --help' says more", usage_problem(*command, error), name));
}

/// The exit code of a command that ended; what it printed may have been lost on a full disk.
int finish(system::Exit exit) {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (written || exit != system::Exit::ok) return static_cast<int>(exit);
  return fail(system::Exit::cannot_write, "cannot write all of the standard output");
}

}  // namespace

int run(int argc, char** argv) {
  open_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond a limit then fails like one to a full disk
  CLI::App app("difftape: find out which attention mechanism trains stably", "difftape");
  app.footer(kFooter);
  app.require_subcommand(1);
  const BuildInfo build = build_info();
  app.set_version_flag("--version", fmt::format("difftape {} ({}, {}, {})", build.version,
                                                build.commit, build.precision, build.compiler));
  Context context{{argv, argv + argc}};
  for (auto add : {add_train, add_sweep, add_report, add_plan, add_analyze, add_config, add_grads,
                   add_replay, add_gradcheck, add_doctor, add_worker}) {
    add(app, context);
  }
  try {
    gemm_engine();  // an engine that is not there is an error before anything starts
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return explain(app, error);
  } catch (const Error& error) {
    return fail(system::exit_of(error), error.what());
  } catch (const std::bad_alloc&) {
    return fail(system::Exit::bad_data,
                "out of memory; `difftape plan CONFIG` says what a run needs");
  } catch (const std::exception& error) {
    if (std::ferror(stdout) == 0) return fail(system::Exit::bad_data, error.what());
  }
  return finish(context.exit);
}

}  // namespace difftape::app
