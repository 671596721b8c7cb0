#include "train/study/sweep/measure.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <ostream>
#include <thread>

#include "core/parallel.h"
#include "train/run/loop/step.h"
#include "train/run/records/progress.h"
#include "train/study/sweep/worker.h"

namespace difftape::study {
namespace {

constexpr double kChoiceSeconds = 1;  ///< of steps, each way
constexpr double kChoiceLimit = 15;   ///< with reading data and making weights
constexpr std::chrono::milliseconds kPoll(10);

}  // namespace

std::optional<StepTime> measure_step(const run::Config& config, const Layout& layout,
                                     double seconds, double limit, const std::string& program) {
  Job job;
  job.config = config;
  job.measure_seconds = seconds;
  const double begin = run::Progress::steady_seconds();
  std::vector<std::unique_ptr<Worker>> workers;
  for (int place = 0; place < layout.jobs(); ++place) {
    workers.push_back(std::make_unique<Worker>(job, layout, place, program));
  }
  StepTime mean;
  for (const auto& worker : workers) {
    while (!worker->poll()) {
      if (run::Progress::steady_seconds() - begin > limit) return std::nullopt;
      std::this_thread::sleep_for(kPoll);
    }
    if (worker->poll()->signal != 0 || worker->poll()->exit != 0) return std::nullopt;
    const StepTime time = read_step_time(worker->output());
    mean.start += time.start / layout.jobs();
    mean.step += time.step / layout.jobs();
  }
  return mean;
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
  const Layout one = make_layout(1, cores, threads);
  const Layout many = make_layout(static_cast<int>(std::min(cores.size(), left)), cores, threads);
  if (many.jobs() == 1) return one;
  const auto rate = [&](const Layout& layout) -> double {
    const auto time = measure_step(config, layout, kChoiceSeconds, kChoiceLimit, program);
    return time ? layout.jobs() * static_cast<double>(tokens_per_step(config)) / time->step : 0;
  };
  const double of_one = rate(one), of_many = of_one > 0 ? rate(many) : 0;
  const Layout& chosen = of_many > of_one ? many : one;
  if (of_one > 0 && of_many > 0) {
    console << fmt::format("{}: {:.0f} tokens/s, {}: {:.0f} tokens/s; using --jobs {}\n", one.str(),
                           of_one, many.str(), of_many, chosen.jobs());
  } else {
    console << fmt::format("steps of {} cannot be measured; using --jobs 1\n", config.run.name);
  }
  console << std::flush;
  return chosen;
}

}  // namespace difftape::study
