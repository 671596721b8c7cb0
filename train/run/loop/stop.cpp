#include "train/run/loop/stop.h"

#include <csignal>

namespace difftape::run {

namespace {

volatile std::sig_atomic_t last_signal = 0;
int nesting = 0;
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

extern "C" void remember_signal(int signal) {
  if (signal == SIGINT && last_signal == SIGINT) {
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
  last_signal = signal;
}

/// A signal that is ignored stays ignored: nohup ignores SIGHUP for the program it starts.
void handle(void (*handler)(int)) {
  for (const int signal : kSignals) {
    if (std::signal(signal, handler) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
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

system::Exit StopRequest::received() const {
  if (last_signal == 0) return system::Exit::ok;
  return last_signal == SIGINT ? system::Exit::sigint : system::Exit::sigterm;
}

}  // namespace difftape::run
