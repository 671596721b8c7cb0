#include "train/system/cpus.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

#include "train/system/control_groups.h"

namespace difftape::system {

std::optional<double> cpu_quota(const std::filesystem::path& root) {
  std::optional<double> least;
  for (const auto& [folder, second] : control_groups("cpu", root)) {
    double quota = 0, period = 0;  // "max 100000" and -1 mean that there is none
    if (second) {
      std::ifstream(folder / "cpu.max") >> quota >> period;
    } else {
      std::ifstream(folder / "cpu.cfs_quota_us") >> quota;
      std::ifstream(folder / "cpu.cfs_period_us") >> period;
    }
    if (quota > 0 && period > 0) least = std::min(least.value_or(quota / period), quota / period);
  }
  return least;
}

CpuUse CpuUse::now() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now().time_since_epoch();
  return {wall.count(), seconds(used.ru_utime) + seconds(used.ru_stime),
          static_cast<double>(used.ru_nivcsw)};
}

CpuUse CpuUse::operator-(const CpuUse& since) const {
  return {seconds - since.seconds, cpu_seconds - since.cpu_seconds,
          preemptions - since.preemptions};
}

bool wait_for_each_other(const CpuUse& use, int threads) {
  constexpr double kOften = 20;  // per second; a quiet machine preempts a few times per second
  return threads > 1 && use.cpu_seconds < 0.75 * threads * use.seconds &&
         use.preemptions > kOften * use.seconds;
}

}  // namespace difftape::system
