#include "core/platform.h"

#include <Eigen/Core>
#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "core/parallel.h"
#include "core/simd.h"
#include "generated/commit.h"

namespace difftape {

namespace {

std::string compiler() {
#ifdef __clang__
  return std::string("Clang ") + __clang_version__;
#else
  return std::string("GCC ") + __VERSION__;
#endif
}

constexpr int kChains = 12;  // enough independent sums to hide the latency of a multiply-add
constexpr int kRounds = 10000;

real run_chains(real seed) {
  using Register = Simd::Register;
  Register sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = seed + real(i) - Register{};
  const Register a = real(0.999) - Register{}, b = real(1e-3) - Register{};
  for (int round = 0; round < kRounds; ++round) {
    for (Register& sum : sums) sum = detail::fused(sum, a, b);
  }
  for (int i = 1; i < kChains; ++i) sums[0] += sums[i];
  real sum = 0;
  for (size_t lane = 0; lane < detail::kLanes; ++lane) sum += sums[0][lane];
  return sum;
}

}  // namespace

BuildInfo build_info() {
  return {DIFFTAPE_VERSION,    DIFFTAPE_COMMIT, compiler(),
          DIFFTAPE_BUILD_TYPE, kRealName,       Eigen::SimdInstructionSetsInUse()};
}

double measure_fma_peak(double seconds) {
  using Clock = std::chrono::steady_clock;
  const double flops_per_window = 2.0 * detail::kLanes * kChains * kRounds;
  const Index cores = std::max<Index>(1, std::thread::hardware_concurrency());
  // Each thread times short windows and keeps the best, which excludes other programs and the start
  // of threads.
  const Index threads = std::min<Index>(num_threads(), cores);
  std::vector<double> best(threads);
  parallel_for(threads, [&](Index i) {
    volatile real keep = 0;
    const auto start = Clock::now();
    auto end = start;
    do {
      const auto begin = Clock::now();
      keep = keep + run_chains(real(i));
      end = Clock::now();
      const double rate = flops_per_window / std::chrono::duration<double>(end - begin).count();
      best[i] = std::max(best[i], rate);
    } while (std::chrono::duration<double>(end - start).count() < seconds);
  });
  double total = 0;
  for (double rate : best) total += rate;
  return total;
}

}  // namespace difftape
