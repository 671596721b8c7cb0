#include "train/system/child.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "core/error.h"

namespace difftape::system {
namespace {

/// Data that the child needs after fork, prepared because the child must not allocate.
struct Start {
  const char* program;
  bool in_path;
  std::vector<char*> arguments, variables;
  cpu_set_t cores;
  bool pinned, apart;
  int streams[3];
  pid_t parent;
  const char* directory;
  ChildLimits limits;
};

constexpr uid_t kNobody = 65534;

/// Returns the null-terminated array that exec expects; it points into `words`.
std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> all;
  for (const std::string& word : words) all.push_back(const_cast<char*>(word.c_str()));
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> variables_with(
    const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> all;
  for (const auto& [name, value] : added) all.push_back(name + "=" + value);
  for (char** word = environ; *word != nullptr; ++word) {
    const std::string variable = *word;
    bool replaced = false;
    for (const auto& entry : added) replaced |= variable.starts_with(entry.first + "=");
    if (!replaced) all.push_back(variable);
  }
  return all;
}

/// Applies the limits to this process. Returns false and sets errno on failure.
bool confine(const ChildLimits& limits) {
  const auto limit = [](__rlimit_resource resource, const std::optional<std::uint64_t>& value) {
    const rlimit both{value.value_or(0), value.value_or(0)};
    return !value || setrlimit(resource, &both) == 0;
  };
  alarm(limits.seconds);  // stays set after exec
  return limit(RLIMIT_FSIZE, limits.file_size) && limit(RLIMIT_AS, limits.memory) &&
         (!limits.unprivileged || geteuid() != 0 || setuid(kNobody) == 0);
}

/// Executes the program in the child. Returns only on failure, with errno set.
void become(const Start& start) {
  if (start.apart) {
    if (setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) return;
    if (getppid() != start.parent) _exit(0);  // the parent ended before prctl
  }
  if (start.pinned && sched_setaffinity(0, sizeof start.cores, &start.cores) != 0) return;
  for (int stream = 0; stream < 3; ++stream) {
    if (dup2(start.streams[stream], stream) < 0) return;
    if (start.streams[stream] == stream) fcntl(stream, F_SETFD, 0);
  }
  if (start.directory[0] != '\0' && chdir(start.directory) != 0) return;
  if (!confine(start.limits)) return;
  std::signal(SIGPIPE, SIG_DFL);
  if (start.in_path)
    execvpe(start.program, start.arguments.data(), start.variables.data());
  else
    execve(start.program, start.arguments.data(), start.variables.data());
}

[[noreturn]] void cannot_start(const std::string& program, int reason) {
  throw MissingInput(fmt::format("cannot start {}: {}", program, std::strerror(reason)));
}

}  // namespace

std::string contents_of(std::FILE* file) {
  std::string text;
  std::rewind(file);
  for (int c = 0; (c = std::getc(file)) != EOF;) text.push_back(static_cast<char>(c));
  return text;
}

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return "";
  const size_t before = text.rfind('\n', end);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  return text.substr(begin, end + 1 - begin);
}

std::string in_shell_quotes(std::string_view word) {
  std::string text = "'";
  for (const char c : word) text.append(c == '\'' ? "'\\''" : std::string(1, c));
  return text + "'";
}

std::string shell_command(std::span<const std::string> words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,/=:+@%";
  std::string command;
  for (const std::string& word : words) {
    const bool plain = !word.empty() && word.find_first_not_of(kPlain) == word.npos;
    command += (command.empty() ? "" : " ") + (plain ? word : in_shell_quotes(word));
  }
  return command;
}

std::string ExitStatus::str() const {
  return signal != 0 ? fmt::format("killed by signal {}", signal)
                     : fmt::format("exit code {}", exit);
}

Child::Child(const std::vector<std::string>& command, const ChildSetup& setup) {
  const std::vector<std::string> variables = variables_with(setup.environment);
  const std::string& program = setup.program.empty() ? command.front() : setup.program;
  Start start{program.c_str(),
              setup.program.empty(),
              pointers(command),
              pointers(variables),
              {},
              !setup.cores.empty(),
              setup.apart,
              {setup.in, setup.out, setup.err},
              getpid(),
              setup.directory.c_str(),
              setup.limits};
  CPU_ZERO(&start.cores);
  for (const int core : setup.cores) CPU_SET(core, &start.cores);
  int failure[2];  // closed by a successful exec
  if (pipe2(failure, O_CLOEXEC) != 0) cannot_start(program, errno);
  id_ = fork();
  if (id_ == 0) {
    become(start);
    const int reason = errno;
    static_cast<void>(write(failure[1], &reason, sizeof reason) == sizeof reason);
    _exit(127);
  }
  const int fork_failed = id_ < 0 ? errno : 0;
  close(failure[1]);
  int reason = 0;
  ssize_t got = 0;
  while (fork_failed == 0 && (got = read(failure[0], &reason, sizeof reason)) < 0 &&
         errno == EINTR) {
  }
  close(failure[0]);
  if (fork_failed != 0) cannot_start(program, fork_failed);
  if (got == sizeof reason) {
    reap(0);
    cannot_start(program, reason);
  }
}

Child::~Child() {
  signal(SIGKILL);
  wait();
}

void Child::reap(int options) {
  if (exit_status_) return;
  int status = 0;
  pid_t reaped = 0;
  while ((reaped = waitpid(id_, &status, options)) < 0 && errno == EINTR) {
  }
  if (reaped == 0) return;
  exit_status_.emplace();
  if (reaped < 0) return;
  if (WIFSIGNALED(status)) exit_status_->signal = WTERMSIG(status);
  if (WIFEXITED(status)) exit_status_->exit = WEXITSTATUS(status);
}

const std::optional<ExitStatus>& Child::poll() {
  reap(WNOHANG);
  return exit_status_;
}

const ExitStatus& Child::wait() {
  reap(0);
  return *exit_status_;
}

void Child::signal(int number) {
  if (!poll()) kill(id_, number);
}

}  // namespace difftape::system
