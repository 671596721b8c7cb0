#include <fmt/core.h>
#include <fmt/ranges.h>

#include <Eigen/Core>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <vector>

#include "core/distributed.h"
#include "core/gemm.h"
#include "core/gemm_backend.h"
#include "core/parallel.h"
#include "core/platform.h"
#include "core/random.h"
#include "core/tensor.h"
#include "train/app/commands.h"
#include "train/run/records/h5.h"
#include "train/run/records/run_files.h"

namespace difftape::app {
namespace {

/// A matmul of training size, measured on this machine.
struct MeasuredGemm {
  double flops = 0;  ///< per second, best of several rounds
  double error = 0;  ///< root mean square error, relative to the root mean square of the result
};

MeasuredGemm measure_gemm(Precision precision) {
  constexpr Index kRows = 2048, kCols = 384, kInner = 384, kChecked = 16;
  Tensor a = Tensor::empty({kRows, kInner}), b = Tensor::empty({kCols, kInner}),
         c = Tensor::empty({kRows, kCols});
  fill_normal(a, RandomStream(1, "doctor a"), 1);
  fill_normal(b, RandomStream(1, "doctor b"), 1);
  MeasuredGemm measured;
  for (int round = 0; round < 20; ++round) {
    const auto started = std::chrono::steady_clock::now();
    gemm(matrix(a), transpose(matrix(b)), c.data(), kCols, Accumulate::no, precision);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    measured.flops = std::max(measured.flops, 2.0 * kRows * kCols * kInner / seconds);
  }
  double squares = 0, sizes = 0;
  for (Index i = 0; i < kChecked; ++i) {
    for (Index j = 0; j < kCols; ++j) {
      long double sum = 0;
      for (Index k = 0; k < kInner; ++k)
        sum += static_cast<long double>(a.row(i)[k]) * static_cast<long double>(b.row(j)[k]);
      const auto exact = static_cast<double>(sum);
      squares += std::pow(static_cast<double>(c.row(i)[j]) - exact, 2);
      sizes += exact * exact;
    }
  }
  measured.error = std::sqrt(squares / sizes);
  return measured;
}

/// Returns the result of a matmul of training size whose sums are rounded.
std::vector<real> product_bits(Engine engine) {
  const EngineScope scope(engine);
  constexpr Index kRows = 50, kCols = 100, kInner = 700;
  Tensor a = Tensor::empty({kRows, kInner}), b = Tensor::empty({kInner, kCols}),
         c = Tensor::empty({kRows, kCols});
  fill_normal(a, RandomStream(1, "doctor a"), 1);
  fill_normal(b, RandomStream(1, "doctor b"), 1);
  gemm(matrix(a), matrix(b), c.data(), kCols, Accumulate::no);
  return {c.values().begin(), c.values().end()};
}

/// Returns true if the fast GEMM gives the bits of the portable one.
bool has_portable_bits() { return product_bits(Engine::fast) == product_bits(Engine::portable); }

/// Returns the vector instruction sets of the processor that difftape can use.
std::string vector_instructions() {
  std::ifstream info("/proc/cpuinfo");
  std::vector<std::string> found;
  for (std::string line; std::getline(info, line) && found.empty();) {
    if (!line.starts_with("flags")) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      for (const char* known :
           {"sse4_2", "avx", "avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16"})
        if (word == known) found.push_back(word);
    }
  }
  return found.empty() ? "unknown" : fmt::format("{}", fmt::join(found, " "));
}

/// Prints a line immediately, because the next one may take a measurement.
void line(const char* name, const std::string& value) {
  fmt::print("{:<20}{}\n", name, value);
  std::fflush(stdout);
}

/// Prints one line per supported value of train.precision.
void print_precisions(double peak) {
  std::string name = "matrix multiply";
  for (const auto& [word, precision] : kNames<Precision>) {
    if (!unsupported_reason(precision).empty() || precision == Precision::bf16_emulated) continue;
    const MeasuredGemm product = measure_gemm(precision);
    // The peak is measured with multiply-adds of full precision.
    const std::string of_peak = precision == Precision::full
                                    ? fmt::format(", {:.0f} % of peak", 100 * product.flops / peak)
                                    : "";
    line(name.c_str(), fmt::format("{:<8}{:.0f} GFLOP/s{}, error {:.1e}, 2048 x 384 x 384", word,
                                   product.flops / 1e9, of_peak, product.error));
    name.clear();
  }
}

/// Prints one line per code path that only some processors or builds run.
void print_code_paths() {
  std::string name = "code paths";
  for (const CodePath& path : code_paths()) {
    line(name.c_str(),
         fmt::format("{:<20}{}", path.name,
                     path.missing.empty() ? "runs here" : "does not run: " + path.missing));
    name.clear();
  }
}

std::string portable_line() {
  const std::string why = unsupported_reason(Engine::portable);
  if (!why.empty()) return "no other processor: " + why;
  return has_portable_bits() ? "any processor with train.gemm: portable"
                             : "processors like this one; any with train.gemm: portable";
}

void print_doctor() {
  const BuildInfo build = build_info();
  line("difftape", fmt::format("{} ({}, {}, {})", build.version, build.commit, build.precision,
                               build.build_type));
  line("compiler", build.compiler);
  line("compiled for", build.level + (build.level.empty() ? "" : ": ") + build.vectors);
  if (const std::string slower = slower_level_reason(); !slower.empty()) line("slower", slower);
  line("processor", run::cpu_model());
  line("instructions", vector_instructions());
  line("cores", fmt::format("{}", std::thread::hardware_concurrency()));
  std::vector<std::string> limits;
  for (const char* variable : {"OMP_NUM_THREADS", "OMP_THREAD_LIMIT"})
    if (std::getenv(variable) != nullptr) limits.emplace_back(variable);
  line("threads", fmt::format("{} ({})", num_threads(),
                              limits.empty() ? "OMP_NUM_THREADS is not set"
                                             : fmt::to_string(fmt::join(limits, ", "))));
  const std::string mpi = distributed::library();
  line("processes", mpi.empty() ? "one: built without MPI" : "mpirun, " + mpi);
  const double peak = measure_fma_peak(0.3);
  line("GEMM backend", gemm_backend());
  line("same bits as", portable_line());
  line("bfloat16", bf16_backend_name().empty() ? "emulated only" : bf16_backend_name());
  print_code_paths();
  line("measured peak", fmt::format("{:.0f} GFLOP/s multiply-add, {}", peak / 1e9, kRealName));
  print_precisions(peak);
  line("Eigen",
       fmt::format("{}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION));
  line("HDF5", run::h5::library_version());
  line("nlohmann-json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR,
                                    NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH));
  line("fmt",
       fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100));
  line("CLI11", CLI11_VERSION);
}

}  // namespace

void doctor_command(CLI::App& program, Context&) {
  add_command(program, "doctor", "Describe and measure this machine and build", {"doctor"})
      .callback(print_doctor);
}

}  // namespace difftape::app
