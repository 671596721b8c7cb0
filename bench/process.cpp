#include "bench/process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "core/error.h"

extern char** environ;

namespace difftape::bench {
namespace {

[[noreturn]] void cannot_start(const std::string& program, int reason) {
  throw MissingInput(fmt::format("cannot start {}: {}", program, std::strerror(reason)));
}

/// What the child gets as its standard input, output and error.
pid_t spawn(const std::vector<std::string>& command, int in, int out, int err) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t pipe_signal;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &pipe_signal);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);

  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t id = 0;
  const int failed =
      posix_spawnp(&id, arguments[0], &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) cannot_start(command.front(), failed);
  return id;
}

std::string last_line_of(std::FILE* file) {
  std::rewind(file);
  std::string last;
  char* line = nullptr;
  size_t capacity = 0;
  for (ssize_t size = 0; (size = getline(&line, &capacity, file)) >= 0;) {
    while (size > 0 && std::strchr(" \t\r\n", line[size - 1]) != nullptr) --size;
    if (size > 0) last.assign(line, static_cast<size_t>(size));
  }
  std::free(line);
  return last;
}

}  // namespace

Process::Process(const std::vector<std::string>& command) : errors_(std::tmpfile()) {
  // A contestant that died must not take the race with it.
  std::signal(SIGPIPE, SIG_IGN);
  int to_child[2], from_child[2];
  if (!errors_ || pipe2(to_child, O_CLOEXEC) != 0) cannot_start(command.front(), errno);
  const File child_input(fdopen(to_child[0], "r"));
  input_.reset(fdopen(to_child[1], "w"));
  if (pipe2(from_child, O_CLOEXEC) != 0) cannot_start(command.front(), errno);
  const File child_output(fdopen(from_child[1], "w"));
  output_.reset(fdopen(from_child[0], "r"));
  id_ = spawn(command, to_child[0], from_child[1], fileno(errors_.get()));
}

Process::~Process() {
  input_.reset();
  for (int tenths = 0; id_ != 0 && tenths < 50; ++tenths) {
    if (waitpid(id_, nullptr, WNOHANG) != 0) {
      id_ = 0;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  kill();
}

void Process::kill() {
  if (id_ == 0) return;
  ::kill(id_, SIGKILL);
  waitpid(id_, nullptr, 0);
  id_ = 0;
}

void Process::write_line(const std::string& line) {
  std::fprintf(input_.get(), "%s\n", line.c_str());
  std::fflush(input_.get());
}

std::optional<std::string> Process::read_line() {
  std::string line;
  for (int c = 0; (c = std::getc(output_.get())) != EOF;) {
    if (c == '\n') return line;
    line.push_back(static_cast<char>(c));
  }
  return std::nullopt;
}

std::string Process::last_words() {
  input_.reset();
  output_.reset();
  int status = 0;
  waitpid(id_, &status, 0);
  id_ = 0;
  const std::string end = WIFSIGNALED(status) ? fmt::format("killed by signal {}", WTERMSIG(status))
                                              : fmt::format("exit code {}", WEXITSTATUS(status));
  const std::string line = last_line_of(errors_.get());
  return line.empty() ? end : fmt::format("{}: {}", end, line);
}

}  // namespace difftape::bench
