#include "train/study/sweep/cores.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

namespace difftape::study {

std::vector<int> usable_cores() {
  std::vector<int> cores;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) cores.push_back(core);
    }
  }
  return cores;
}

std::string Layout::str() const {
  const int most = *std::max_element(threads.begin(), threads.end());
  return fmt::format("{} process{} x {} thread{}", jobs(), jobs() == 1 ? "" : "es", most,
                     most == 1 ? "" : "s");
}

Layout make_layout(int jobs, const std::vector<int>& cores, int most_threads) {
  Layout layout;
  const int count = static_cast<int>(cores.size());
  for (int i = 0; i < jobs; ++i) {
    std::vector<int> own(cores.begin() + i * count / jobs, cores.begin() + (i + 1) * count / jobs);
    if (own.empty()) own = {cores[static_cast<size_t>(i % count)]};
    layout.threads.push_back(std::clamp(static_cast<int>(own.size()), 1, most_threads));
    layout.cores.push_back(std::move(own));
  }
  return layout;
}

}  // namespace difftape::study
