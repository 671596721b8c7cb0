#include "train/app/program.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <thread>

#include "core/distributed.h"
#include "core/gemm_backend.h"
#include "core/parallel.h"
#include "train/app/commands.h"
#include "train/system/cpus.h"
#include "train/system/files.h"

namespace difftape::app {

namespace fs = std::filesystem;

namespace {

/// Limits the time that idle threads spin before they sleep. The default of libgomp is so long that
/// any other busy program slows training many times. libgomp reads the limit before main, so the
/// program is executed again.
void limit_spinning(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  if (setenv("GOMP_SPINCOUNT", "10000", 1) == 0) execv("/proc/self/exe", argv);
}

/// Uses one thread per CPU that a quota of the control groups allows, unless OMP_NUM_THREADS is
/// set.
void respect_cpu_quota() {
  const std::optional<double> quota = system::cpu_quota();
  if (quota && std::getenv("OMP_NUM_THREADS") == nullptr)
    set_num_threads(std::clamp(static_cast<int>(std::ceil(*quota)), 1, num_threads()));
}

/// Sets the name that ps and top show to the name of the program. Without it, a program executed as
/// /proc/self/exe, by limit_spinning or as a worker, is named "exe".
void name_process(const std::string& name) { prctl(PR_SET_NAME, name.c_str()); }

/// Prints why this process ends, and ends the processes that train with it.
int fail(system::Exit exit, std::string_view message) {
  distributed::failed();
  // Errors of a configuration begin with file:line:column, which editors and terminals follow.
  std::string text =
      fmt::format("{}{}\n", exit == system::Exit::config ? "" : "difftape: ", message);
  if (distributed::count() > 1)
    text += fmt::format("in process {} on {}\n", distributed::rank(), distributed::machine());
  print_to_stderr(std::move(text));
  if (distributed::count() > 1) distributed::end_all(static_cast<int>(exit));
  return static_cast<int>(exit);
}

/// Opens closed standard streams. Otherwise the next opened file would get the descriptor of a
/// closed stream and receive console output.
void open_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(descriptor, F_GETFD) == -1) static_cast<void>(open("/dev/null", O_RDWR));
}

/// Returns whether the program that reads the output has ended: `| head -1`.
bool reader_has_left() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

/// Formats --help-all: a section per command, also for those of `data` and `config`,
/// under its full name. help2man makes subsections of the manual page from them.
class HelpAll : public CLI::Formatter {
  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const override {
    return mode == CLI::AppFormatMode::All ? sections(*app, app->get_name())
                                           : Formatter::make_subcommands(app, mode);
  }

  std::string sections(const CLI::App& above, const std::string& name) const {
    std::string text;
    for (const CLI::App* command : above.get_subcommands([](const CLI::App*) { return true; })) {
      if (command->get_group().empty()) continue;  // hidden
      const std::string full = name + " " + command->get_name();
      text += fmt::format("\n{}:\n  {}\n\n", full, command->get_description());
      for (const CLI::Option* option : command->get_options())
        if (!option->get_group().empty() && option != command->get_help_ptr())
          text += make_option(option, option->get_positional());
      text += sections(*command, full);
    }
    return text;
  }
};

/// Returns the exit code of a command that ended; its output may have been lost on a full disk.
int finish(system::Exit exit) {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (written || exit != system::Exit::ok || reader_has_left()) return static_cast<int>(exit);
  return fail(system::Exit::cannot_write,
              "cannot write all of the standard output; free disk space or redirect it");
}

}  // namespace

int main(int argc, char** argv, const std::string& shared) {
  limit_spinning(argv);
  respect_cpu_quota();
  open_standard_streams();
  const std::string name = argc > 0 ? fs::path(argv[0]).filename().string() : "difftape";
  name_process(name);
  system::set_shared_directory(shared);
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond a limit then fails like one to a full disk
  const int most = std::max<int>(1024, static_cast<int>(std::thread::hardware_concurrency()));
  if (num_threads() > most)
    return fail(system::Exit::usage,
                fmt::format("OMP_NUM_THREADS: is {}, but must be at most {}; unset it to use one "
                            "thread per core",
                            num_threads(), most));
  Context context{.command_line = {argv, argv + argc}};
  const std::unique_ptr<CLI::App> program = make_program(name);
  for (const AddCommand add : commands()) add(*program, context);
  program->formatter(std::make_shared<HelpAll>());
  program->set_help_all_flag("--help-all", "Print the help of every command and exit");
  try {
    gemm_backend();  // reports an unknown backend before anything starts
    parse_and_run(*program, argc, argv);
  } catch (const Error& error) {
    return fail(system::exit_of(error), error.what());
  } catch (const std::bad_alloc&) {
    return fail(system::Exit::bad_data,
                "out of memory; `difftape plan CONFIG` estimates the memory of a run");
  } catch (const std::exception& error) {
    if (std::ferror(stdout) == 0) return fail(system::Exit::bad_data, error.what());
  }
  const int code = finish(context.exit);
  distributed::leave();
  return code;
}

}  // namespace difftape::app
