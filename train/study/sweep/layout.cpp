#include "train/study/sweep/layout.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <set>

#include "core/parallel.h"
#include "train/run/config/writer.h"
#include "train/run/loop/step.h"
#include "train/run/loop/step_memory.h"
#include "train/study/sweep/worker.h"
#include "train/system/memory.h"

namespace difftape::study {
namespace {

constexpr double kChoiceSeconds = 1;  ///< of steps, each way
constexpr double kChoiceLimit = 15;   ///< with reading data and making weights

/// What of a configuration decides the memory of a step.
std::string sizes_of(const run::Config& config) {
  std::string text;
  for (const auto& [key, value] : run::flat_config(config)) {
    const bool counts = key.starts_with("model.") || key.starts_with("data.") ||
                        key.starts_with("train.") || key == "optim.name";
    if (counts) text += fmt::format("{}: {}\n", key, value);
  }
  return text;
}

}  // namespace

double mean_busy(std::size_t runs, int jobs) {
  const auto all = static_cast<Index>(runs);
  return static_cast<double>(all) / static_cast<double>(ceil_div(all, jobs));
}

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

int jobs_with_memory(std::span<const run::Config* const> runs, int jobs) {
  const std::optional<std::uint64_t> free = system::free_memory();
  Index largest = 1;
  std::set<std::string> known;  // seeds and learning rates need the same
  const Index processes = std::clamp<Index>(jobs, 1, std::ssize(runs));
  for (const run::Config* config : runs) {
    if (!known.insert(sizes_of(*config)).second) continue;
    run::require_memory(*config, processes, free);
    largest = std::max(largest, run::step_memory(*config).total());
  }
  const auto cores = static_cast<std::uint64_t>(usable_cores().size());
  return static_cast<int>(free ? std::min(cores, *free / static_cast<std::uint64_t>(largest))
                               : cores);
}

Layout choose_layout(const run::Config& config, std::size_t left, int jobs, int most_jobs,
                     const std::string& program, std::ostream& console) {
  const int threads = num_threads();
  std::vector<int> cores = usable_cores();
  if (jobs > 0) {
    return make_layout(
        static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(jobs), left)), cores,
        threads);
  }
  if (static_cast<std::size_t>(threads) < cores.size()) {
    cores.resize(static_cast<std::size_t>(threads));
  }
  Layout one = make_layout(1, cores, threads);
  const std::size_t most = std::min(left, static_cast<std::size_t>(most_jobs));
  const Layout many = make_layout(static_cast<int>(std::min(cores.size(), most)), cores, threads);
  if (many.jobs() == 1) return one;
  const auto rate = [&](const Layout& layout) -> double {
    const auto time = measure_step(config, layout, kChoiceSeconds, kChoiceLimit, program);
    if (!time) return 0;
    return mean_busy(left, layout.jobs()) * static_cast<double>(tokens_per_step(config)) /
           time->step;
  };
  console << fmt::format("timing steps of {} in {} and in {}\n", config.run.name, one.str(),
                         many.str())
          << std::flush;
  const double of_one = rate(one), of_many = of_one > 0 ? rate(many) : 0;
  const Layout& best = of_many > of_one ? many : one;
  if (of_one > 0 && of_many > 0) {
    console << fmt::format("{}: {:.0f} tokens/s, {}: {:.0f} tokens/s; using --jobs {}\n", one.str(),
                           of_one, many.str(), of_many, best.jobs());
  } else {
    console << fmt::format("steps of {} cannot be measured; using --jobs 1\n", config.run.name);
  }
  console << std::flush;
  return best;
}

}  // namespace difftape::study
