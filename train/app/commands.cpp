#include "train/app/commands.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "core/gemm.h"
#include "core/platform.h"
#include "train/run/config/foreign_names.h"
#include "train/run/records/h5.h"
#include "train/system/files.h"

namespace difftape::app {

namespace fs = std::filesystem;

namespace {

OutputError no_output_of(const fs::path& out, std::string_view command) {
  return OutputError(fmt::format(
      "{} exists and is no output of {}; nothing else is replaced: choose another name with --out",
      out.string(), command));
}

/// Checked before minutes of measuring: a missing directory would lose the result.
void require_directory_of(const fs::path& out) {
  std::error_code ignored;
  if (!out.has_parent_path() || fs::is_directory(out.parent_path(), ignored)) return;
  throw OutputError(
      fmt::format("cannot write {}: {} is no directory", out.string(), out.parent_path().string()));
}

/// Threads that wait for work spin before they sleep. The default of libgomp is so long that any
/// other busy program slows training many times; it is read before main, hence the new start.
void limit_spinning(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  if (setenv("GOMP_SPINCOUNT", "10000", 1) == 0) execv("/proc/self/exe", argv);
}

constexpr const char* kExitCodes =
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

/// Whether the program that read what this one prints has ended: `| head -1`.
bool reader_has_left() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

/// The exit code of a command that ended; what it printed may have been lost on a full disk.
int finish(system::Exit exit) {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (written || exit != system::Exit::ok || reader_has_left()) return static_cast<int>(exit);
  return fail(system::Exit::cannot_write, "cannot write all of the standard output");
}

}  // namespace

void outlive_reader() { std::signal(SIGPIPE, SIG_IGN); }

void require_h5_output(const fs::path& out, std::string_view command,
                       const std::vector<std::string>& objects,
                       const std::vector<fs::path>& inputs) {
  if (out.extension() != ".h5") {
    throw UsageError(fmt::format("--out: {} does not end in .h5", out.string()));
  }
  require_directory_of(out);
  require_output_file(out, ".h5", inputs);
  std::error_code ignored;
  if (!fs::exists(out, ignored)) return;
  const run::h5::File file = run::h5::File::open(out);
  const auto missing = [&](const std::string& object) { return !file.exists(object); };
  if (std::ranges::any_of(objects, missing)) throw no_output_of(out, command);
}

void require_csv_output(const fs::path& out, std::string_view command, std::string_view header) {
  require_directory_of(out);
  require_output_file(out, ".csv");
  std::error_code ignored;
  if (fs::exists(out, ignored) && !system::read_text(out).starts_with(std::string(header) + "\n")) {
    throw no_output_of(out, command);
  }
}

void require_output_file(const fs::path& out, std::string_view extension,
                         const std::vector<fs::path>& inputs) {
  std::error_code ignored;
  if (!fs::exists(out, ignored)) return;
  const auto is_out = [&](const fs::path& input) { return fs::equivalent(input, out, ignored); };
  const bool is_input = std::any_of(inputs.begin(), inputs.end(), is_out);
  if (fs::is_regular_file(out, ignored) && out.extension() == extension && !is_input) return;
  throw OutputError(fmt::format(
      "{} exists and is {}; only {} files are replaced: choose another name with --out",
      out.string(), is_input ? "what this command reads" : "something else", extension));
}

int run(int argc, char** argv, std::span<const MakeCommand> commands, std::string_view start) {
  limit_spinning(argv);
  open_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond a limit then fails like one to a full disk
  const BuildInfo build = build_info();
  Program program{.name = "difftape",
                  .help = "difftape: find out which attention mechanism trains stably",
                  .footer = kExitCodes,
                  .version = fmt::format("difftape {} ({}, {}, {})", build.version, build.commit,
                                         build.precision, build.compiler),
                  .commands = {},
                  .start = fmt::format("Start with:  {}\n\n", start),
                  .advice = run::advice_for_option};
  Context context{{argv, argv + argc}};
  for (const MakeCommand make : commands) program.commands.push_back(make(context));
  try {
    gemm_backend();  // a backend that is not there is an error before anything starts
    if (!parse_and_run(program, argc, argv)) return 0;
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
