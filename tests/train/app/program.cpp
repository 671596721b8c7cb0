#include "tests/train/app/program.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

namespace difftape::test {
namespace {

constexpr int kSmallestPipe = 4096;
constexpr unsigned kSeconds = 240;

/// During its lifetime, children start with the default actions of these signals; under nohup the
/// test itself ignores some.
class DefaultSignals {
 public:
  DefaultSignals() {
    for (std::size_t i = 0; i < kSignals.size(); ++i)
      before_[i] = std::signal(kSignals[i], SIG_DFL);
  }
  ~DefaultSignals() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) std::signal(kSignals[i], before_[i]);
  }
  DefaultSignals(const DefaultSignals&) = delete;
  DefaultSignals& operator=(const DefaultSignals&) = delete;

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP, SIGUSR1};
  std::array<void (*)(int), kSignals.size()> before_;
};

}  // namespace

Process::Process(const std::vector<std::string>& arguments, const Conditions& conditions)
    : err_(std::tmpfile()) {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  fcntl(ends[1], F_SETPIPE_SZ, kSmallestPipe);
  out_.reset(fdopen(ends[0], "rb"));
  const system::File pipe(fdopen(ends[1], "wb"));
  const system::File file(
      conditions.out_file.empty() ? nullptr : std::fopen(conditions.out_file.c_str(), "r+e"));
  std::vector<std::string> command = arguments;
  command.insert(command.begin(), conditions.program);
  system::ChildSetup setup{0, file ? fileno(file.get()) : ends[1], fileno(err_.get())};
  setup.program = conditions.program;
  setup.environment = conditions.environment;
  setup.directory = conditions.directory;
  setup.limits = {conditions.largest_file, conditions.memory, kSeconds, conditions.unprivileged};
  const DefaultSignals default_signals;
  child_ = std::make_unique<system::Child>(command, setup);
}

bool Process::read_until(const std::string& text) {
  while (printed_.find(text) == std::string::npos) {
    const int next = std::fgetc(out_.get());
    if (next == EOF) return false;
    printed_.push_back(static_cast<char>(next));
  }
  return true;
}

Outcome Process::wait() {
  for (int next; (next = std::fgetc(out_.get())) != EOF;) printed_.push_back(char(next));
  const system::ExitStatus& exit_status = child_->wait();
  return {exit_status.signal != 0 ? -exit_status.signal : exit_status.exit, printed_,
          system::contents_of(err_.get())};
}

std::string error(int exit, const Outcome& outcome, std::source_location where) {
  if (outcome.exit != exit) {
    ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line()))
        << "exit code " << outcome.exit << ", not " << exit << "\n"
        << outcome.out << outcome.err;
  }
  return outcome.err;
}

std::string output(const Outcome& outcome, std::source_location where) {
  error(0, outcome, where);
  return outcome.out;
}

bool becomes_true(const std::function<bool()>& holds) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::minutes(2);
  while (!holds()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace difftape::test
