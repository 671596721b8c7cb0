#include "bench/measure.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "core/build_info.h"
#include "core/gemm.h"
#include "core/parallel.h"
#include "core/peak.h"
#include "train/log/run_files.h"

namespace difftape::bench {

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

double seconds_of(const std::function<void()>& work) {
  const auto started = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
}

void print_environment() {
  const BuildInfo build = build_info();
  fmt::print("difftape {} ({}), {}, {}, {}, {}\n", build.version, build.commit, build.compiler,
             build.build_type, build.vectors, gemm_engine());
  fmt::print("{} threads on {}, peak {:.0f} GFLOP/s {}\n", num_threads(), cpu_model(),
             measure_fma_peak(0.3) / 1e9, build.precision);
}

}  // namespace difftape::bench
