#include "core/platform.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#else
static const char* gnu_get_libc_version() { return "0"; }
#endif

#include "core/distributed.h"
#include "core/gemm_backend.h"
#include "core/parallel.h"
#include "core/simd.h"
#include "core/tile.h"
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

constexpr double kChoosingLoader = 2.33;  // first glibc whose loader reads glibc-hwcaps

/// Returns the highest level with a separate library that the processor supports.
std::string level_of_processor() {
#ifdef __x86_64__
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("bmi2"))
    return "x86-64";
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                 __builtin_cpu_supports("avx512vl")
             ? "x86-64-v4"
             : "x86-64-v3";
#else
  return "";
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
          DIFFTAPE_BUILD_TYPE, kRealName,       Eigen::SimdInstructionSetsInUse(),
          DIFFTAPE_LEVEL};
}

std::string slower_level_reason() {
  const std::string level = build_info().level, best = level_of_processor();
  if (level.empty() || level == best) return "";
  std::string cause = fmt::format("reinstall difftape, since glibc-hwcaps/{} has no library", best);
  const char* tunables = std::getenv("GLIBC_TUNABLES");
  if (tunables != nullptr && std::strstr(tunables, "glibc.cpu.") != nullptr)
    cause = fmt::format("unset GLIBC_TUNABLES, which is {}", tunables);
  else if (std::strtod(gnu_get_libc_version(), nullptr) < kChoosingLoader)
    cause = fmt::format("update glibc {} to {}", gnu_get_libc_version(), kChoosingLoader);
  return fmt::format("the library for {} is in use, but the processor supports {}; {}", level, best,
                     cause);
}

std::vector<CodePath> code_paths() {
  const auto unless = [](bool there, const char* missing) { return there ? "" : missing; };
  return {
      {"AVX-512 vectors", unless(detail::kRegisterBytes == 64,
                                 "the program was compiled for a processor without them")},
      {"fused multiply-add", unsupported_reason(Engine::portable)},
      {"libxsmm", unless(tile::libxsmm_backend() != nullptr,
                         "built without it, or it has no code for this processor")},
      {"AVX512-BF16 pairs", unsupported_reason(Precision::bf16)},
      {"processes by MPI", unless(!distributed::library().empty(), "built without MPI")},
  };
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
