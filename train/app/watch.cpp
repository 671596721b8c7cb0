#include "train/app/watch.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "train/study/compare/collection.h"

namespace difftape::app {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// Between two looks at the runs at least, and between two looks at what a signal said.
constexpr Clock::duration kPause = 2s, kTick = 200ms;

}  // namespace

system::Exit watch_runs(const std::vector<std::filesystem::path>& dirs,
                        const std::function<Seen()>& look) {
  const system::StopRequest stop;
  study::RunWatch runs(dirs);
  while (stop.received() == system::Exit::ok) {
    if (!runs.changed()) {
      std::this_thread::sleep_for(kTick);
      continue;
    }
    const auto begin = Clock::now();
    const Seen seen = look();
    std::fflush(stdout);
    if (seen == Seen::all_have_ended && !runs.more_to_come()) break;
    const auto end = begin + std::max(kPause, 10 * (Clock::now() - begin));
    while (stop.received() == system::Exit::ok && Clock::now() < end) {
      std::this_thread::sleep_for(kTick);
    }
  }
  return stop.received();
}

}  // namespace difftape::app
