#include "core/platform.h"

#include <Eigen/Core>
#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "core/parallel.h"
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

using Packet = Eigen::internal::packet_traits<real>::type;
constexpr int kChains = 12;  // enough independent sums to hide the latency of a multiply-add
constexpr int kRounds = 10000;

real run_chains(real seed) {
  Packet sums[kChains];
  for (int i = 0; i < kChains; ++i) {
    sums[i] = Eigen::internal::pset1<Packet>(seed + static_cast<real>(i));
  }
  const Packet a = Eigen::internal::pset1<Packet>(real(0.999)),
               b = Eigen::internal::pset1<Packet>(real(1e-3));
  for (int round = 0; round < kRounds; ++round) {
    for (Packet& sum : sums) sum = Eigen::internal::pmadd(sum, a, b);
  }
  Packet total = sums[0];
  for (int i = 1; i < kChains; ++i) {
    total = Eigen::internal::padd(total, sums[i]);
  }
  return Eigen::internal::predux(total);
}

}  // namespace

BuildInfo build_info() {
  return {DIFFTAPE_VERSION,    DIFFTAPE_COMMIT, compiler(),
          DIFFTAPE_BUILD_TYPE, kRealName,       Eigen::SimdInstructionSetsInUse()};
}

double measure_fma_peak(double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto width = static_cast<double>(Eigen::internal::packet_traits<real>::size);
  const double flops_per_window = 2.0 * width * kChains * kRounds;
  const Index cores = std::max<Index>(1, std::thread::hardware_concurrency());
  // Each thread times short windows of its own and keeps the best: neither other programs nor the
  // start of the threads are measured.
  const Index threads = std::min<Index>(num_threads(), cores);
  std::vector<double> best(static_cast<size_t>(threads));
  parallel_for(threads, [&](Index i) {
    volatile real keep = 0;
    const auto start = Clock::now();
    auto end = start;
    do {
      const auto begin = Clock::now();
      keep = keep + run_chains(real(i));
      end = Clock::now();
      const double rate = flops_per_window / std::chrono::duration<double>(end - begin).count();
      best[static_cast<size_t>(i)] = std::max(best[static_cast<size_t>(i)], rate);
    } while (std::chrono::duration<double>(end - start).count() < seconds);
  });
  double total = 0;
  for (double rate : best) total += rate;
  return total;
}

}  // namespace difftape
