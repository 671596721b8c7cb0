#include "bench/measure.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

#include "core/error.h"
#include "core/gemm_backend.h"
#include "core/parallel.h"
#include "core/platform.h"
#include "train/run/config/reader.h"
#include "train/run/records/run_files.h"
#include "train/system/exit.h"

namespace difftape::bench {

std::vector<double> ratios(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) result.push_back(a[i] / b[i]);
  return result;
}

std::string ratio_text(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> by_round = ratios(a, b);
  return fmt::format("{:.3f} ({:.3f}-{:.3f})", stats::quantile(by_round, 0.5),
                     stats::quantile(by_round, 0.1), stats::quantile(by_round, 0.9));
}

double seconds_of(const std::function<void()>& work) {
  const auto started = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
}

std::vector<std::vector<double>> interleaved_seconds(
    const std::vector<std::function<void()>>& works, int rounds) {
  std::vector<std::vector<double>> seconds(works.size());
  for (const auto& work : works) work();
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < works.size(); ++i) seconds[i].push_back(seconds_of(works[i]));
  return seconds;
}

ProcessMemory process_memory() {
  std::ifstream status("/proc/self/status");
  ProcessMemory memory;
  for (std::string key; status >> key;) {
    double kib = 0;
    if ((key == "VmRSS:" || key == "VmHWM:") && status >> kib)
      (key == "VmRSS:" ? memory.now : memory.peak) = 1024 * kib;
  }
  return memory;
}

void print_environment() {
  const BuildInfo build = build_info();
  fmt::print("difftape {} ({}), {}, {}, {}, {}\nflags {}\n", build.version, build.commit,
             build.compiler, build.build_type, build.vectors, gemm_backend(), DIFFTAPE_BENCH_FLAGS);
  fmt::print("{} threads on {}, peak {:.0f} GFLOP/s {}\n", num_threads(), run::cpu_model(),
             measure_fma_peak(0.3) / 1e9, build.precision);
}

std::string describe(const run::Config& config) {
  const ModelConfig& m = config.model;
  return fmt::format(
      "d_model {}, {} layers, {} heads, d_ff {}, vocabulary {}, T {}, batch {}, match_params {}",
      m.d_model, m.num_layers, m.num_heads, m.d_ff, m.vocab_size, config.data.seq_len,
      config.data.batch_size, m.match_params);
}

void require_supported(const std::string& name, const ModelConfig& model) {
  const std::string unsupported = run::unsupported_reason(model);
  throw_if<ConfigError>(!unsupported.empty(), "{}: {}", name, unsupported);
}

void ModelOptions::add_to(CLI::App& app) {
  app.add_option("CONFIG", config)->required();
  app.add_option("--kinds", kinds)->delimiter(',');
  app.add_option("--set", overrides)->allow_extra_args(false)->take_all();
  app.add_option("--rounds", rounds)->check(CLI::PositiveNumber);
}

run::Config ModelOptions::load() const { return run::load_config(config, overrides).config; }

void ModelOptions::print_header() const {
  print_environment();
  fmt::print("{}\n\n", describe(load()));
}

int run_program(CLI::App& app, int argc, char** argv, const std::function<void()>& body) {
  try {
    app.parse(argc, argv);
    body();
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(system::Exit::usage);
  } catch (const Error& error) {
    fmt::print(stderr, "{}: {}\n", std::string(argv[0]).substr(std::string(argv[0]).rfind('/') + 1),
               error.what());
    return static_cast<int>(system::exit_of(error));
  }
}

}  // namespace difftape::bench
