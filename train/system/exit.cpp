#include "train/system/exit.h"

#include <csignal>

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
int nesting = 0;
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

extern "C" void remember_signal(int signal) {
  if (signal == SIGINT && last_signal == SIGINT) {
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
  last_signal = signal;
}

/// Installs a handler. Ignored signals stay ignored: nohup ignores SIGHUP for the program it
/// starts.
void handle(void (*handler)(int)) {
  for (const int signal : kSignals)
    if (std::signal(signal, handler) == SIG_IGN) std::signal(signal, SIG_IGN);
}

}  // namespace

StopRequest::StopRequest() {
  if (nesting++ > 0) return;
  last_signal = 0;
  handle(remember_signal);
}

StopRequest::~StopRequest() {
  if (--nesting == 0) handle(SIG_DFL);
}

Exit StopRequest::received() const {
  if (last_signal == 0) return Exit::ok;
  return last_signal == SIGINT ? Exit::sigint : Exit::sigterm;
}

}  // namespace difftape::system
