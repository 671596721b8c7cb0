#include "train/study/sweep/layout.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <ostream>

#include "core/parallel.h"
#include "train/run/loop/step.h"
#include "train/study/sweep/worker.h"

namespace difftape::study {
namespace {

constexpr double kChoiceSeconds = 1;  ///< of steps, each way
constexpr double kChoiceLimit = 15;   ///< with reading data and making weights

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

Layout choose_layout(const run::Config& config, std::size_t left, int jobs,
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
  const Layout many = make_layout(static_cast<int>(std::min(cores.size(), left)), cores, threads);
  if (many.jobs() == 1) return one;
  const auto rate = [&](const Layout& layout) -> double {
    const auto time = measure_step(config, layout, kChoiceSeconds, kChoiceLimit, program);
    if (!time) return 0;
    return mean_busy(left, layout.jobs()) * static_cast<double>(tokens_per_step(config)) /
           time->step;
  };
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
