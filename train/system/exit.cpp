#include "train/system/exit.h"

#include <unistd.h>

#include <csignal>
#include <cstring>
#include <ctime>

#include "core/error.h"

namespace difftape::system {
namespace {

template <class Type>
bool is_a(const std::exception& error) {
  return dynamic_cast<const Type*>(&error) != nullptr;
}

}  // namespace

Exit exit_of(const std::exception& error) {
  if (is_a<UsageError>(error)) return Exit::usage;
  if (is_a<MissingInput>(error)) return Exit::missing_input;
  if (is_a<OutputError>(error)) return Exit::cannot_write;
  if (is_a<ConfigError>(error)) return Exit::config;
  return Exit::bad_data;
}

namespace {

volatile std::sig_atomic_t last_signal = 0;
const char* volatile first_note = nullptr;
double last_time = 0;
int nesting = 0;
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

double steady_seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Calls only functions that are safe in a signal handler.
extern "C" void remember_signal(int signal) {
  const double now = steady_seconds();
  const bool repeated = signal == last_signal && (signal == SIGINT || signal == SIGTERM);
  if (repeated && now - last_time < StopRequest::kRepeatSeconds) return;
  if (repeated) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  if (last_signal == 0 && first_note != nullptr) {
    const char* note = first_note;
    static_cast<void>(!write(STDERR_FILENO, note, std::strlen(note)));
  }
  last_signal = signal;
  last_time = now;
}

/// Installs a handler. Ignored signals stay ignored: nohup ignores SIGHUP for the program it
/// starts.
void handle(void (*handler)(int)) {
  for (const int signal : kSignals)
    if (std::signal(signal, handler) == SIG_IGN) std::signal(signal, SIG_IGN);
}

}  // namespace

StopRequest::StopRequest(const char* note) : outer_note_(first_note) {
  if (note != nullptr) first_note = note;
  if (nesting++ > 0) return;
  last_signal = 0;
  handle(remember_signal);
}

StopRequest::~StopRequest() {
  first_note = outer_note_;
  if (--nesting == 0) handle(SIG_DFL);
}

Exit StopRequest::received() const {
  if (last_signal == 0) return Exit::ok;
  return last_signal == SIGINT ? Exit::sigint : Exit::sigterm;
}

}  // namespace difftape::system
