#include "bench/process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "core/error.h"

namespace difftape::bench {
namespace {

void make_pipe(int (&ends)[2], const std::string& program) {
  if (pipe2(ends, O_CLOEXEC) == 0) return;
  throw MissingInput(fmt::format("cannot start {}: {}", program, std::strerror(errno)));
}

}  // namespace

Process::Process(const std::vector<std::string>& command) : errors_(std::tmpfile()) {
  // Writing to a candidate that has ended must not end the benchmark.
  std::signal(SIGPIPE, SIG_IGN);
  if (!errors_)
    throw MissingInput(fmt::format("cannot start {}: no temporary file", command.front()));
  int to_child[2], from_child[2];
  make_pipe(to_child, command.front());
  const system::File child_input(fdopen(to_child[0], "r"));
  input_.reset(fdopen(to_child[1], "w"));
  make_pipe(from_child, command.front());
  const system::File child_output(fdopen(from_child[1], "w"));
  output_.reset(fdopen(from_child[0], "r"));
  child_.emplace(command, system::ChildSetup{to_child[0], from_child[1], fileno(errors_.get())});
}

Process::~Process() {
  input_.reset();
  for (int tenths = 0; child_ && !child_->poll() && tenths < 50; ++tenths) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

void Process::kill() { child_->signal(SIGKILL); }

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

std::string Process::how_it_ended() {
  input_.reset();
  output_.reset();
  const std::string end = child_->wait().str();
  const std::string line = system::last_line(system::contents_of(errors_.get()));
  return line.empty() ? end : fmt::format("{}: {}", end, line);
}

}  // namespace difftape::bench
