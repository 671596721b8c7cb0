#include "train/study/sweep/layout.h"

#include <sched.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "core/parallel.h"
#include "train/run/config/writer.h"
#include "train/run/loop/step_memory.h"
#include "train/system/memory.h"

namespace difftape::study {
namespace {

/// Cores of a worker unless --jobs says otherwise: the threads of a step wait for each other after
/// every op, processes that train different runs never do.
constexpr std::size_t kCoresOfWorker = 1;

/// The cores this process may run on, as the system numbers them.
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

/// What of a configuration decides the memory of a step.
std::string sizes_of(const run::Config& config) {
  std::string text;
  for (const auto& [key, value] : run::flat_config(config)) {
    const bool decides = key.starts_with("model.") || key.starts_with("data.") ||
                         key.starts_with("train.") || key == "optim.name";
    if (decides) text += key + ": " + value + "\n";
  }
  return text;
}

/// How many workers have the memory to train these runs. Throws ConfigError if `jobs` have not.
std::size_t workers_with_memory(std::span<const run::Config* const> runs, int jobs) {
  const std::optional<std::uint64_t> free = system::free_memory();
  Index largest = 1;
  std::set<std::string> known;  // seeds and learning rates need the same
  const Index processes = std::clamp<Index>(jobs, 1, std::ssize(runs));
  for (const run::Config* config : runs) {
    if (!known.insert(sizes_of(*config)).second) continue;
    run::require_memory(*config, processes, free);
    largest = std::max(largest, run::step_memory(*config).total());
  }
  return free ? std::max<std::size_t>(1, *free / static_cast<std::uint64_t>(largest)) : runs.size();
}

}  // namespace

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

Layout choose_layout(std::span<const run::Config* const> left, int jobs) {
  const std::size_t with_memory = workers_with_memory(left, jobs);
  const int threads = num_threads();
  std::vector<int> cores = usable_cores();
  std::size_t workers = static_cast<std::size_t>(jobs);
  if (jobs == 0) {
    cores.resize(std::min(cores.size(), static_cast<std::size_t>(threads)));
    workers = std::min(with_memory, cores.size() / kCoresOfWorker);
  }
  return make_layout(static_cast<int>(std::min(workers, left.size())), cores, threads);
}

}  // namespace difftape::study
