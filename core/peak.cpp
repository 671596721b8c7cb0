#include "core/peak.h"

#include <Eigen/Core>
#include <algorithm>
#include <chrono>
#include <vector>

#include "core/parallel.h"

namespace difftape {

namespace {

using Packet = Eigen::internal::packet_traits<real>::type;
constexpr int kChains = 12;  // enough independent sums to hide the latency of a multiply-add
constexpr int kRounds = 20000;

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

double measure_fma_peak(double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto width = static_cast<double>(Eigen::internal::packet_traits<real>::size);
  const Index threads = num_threads();
  std::vector<real> sink(static_cast<size_t>(threads));
  double best = 0;
  const auto start = Clock::now();
  do {
    const auto begin = Clock::now();
    parallel_for(threads, [&](Index i) { sink[static_cast<size_t>(i)] += run_chains(real(i)); });
    const double elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::max(best, 2.0 * width * kChains * kRounds * static_cast<double>(threads) / elapsed);
  } while (std::chrono::duration<double>(Clock::now() - start).count() < seconds);
  const volatile real keep = sink[0];
  static_cast<void>(keep);
  return best;
}

}  // namespace difftape
