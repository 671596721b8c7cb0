#include "train/loop/stop.h"

#include <csignal>

namespace difftape {

namespace {

volatile std::sig_atomic_t last_signal = 0;

extern "C" void remember_signal(int signal) {
  if (signal == SIGINT && last_signal == SIGINT) {
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
  last_signal = signal;
}

}  // namespace

StopRequest::StopRequest() {
  last_signal = 0;
  std::signal(SIGINT, remember_signal);
  std::signal(SIGTERM, remember_signal);
}

StopRequest::~StopRequest() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

Exit StopRequest::received() const {
  return last_signal == SIGINT ? Exit::sigint : last_signal == SIGTERM ? Exit::sigterm : Exit::ok;
}

}  // namespace difftape
