#pragma once
// Shared by the benchmarks: interleaved timing, ratios (with quantiles of train/stats), options,
// memory of the process, header of the output, and exit codes.

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "train/run/config/config.h"
#include "train/stats/descriptive.h"

namespace difftape::bench {

/// Returns a / b element by element, up to the length of the shorter one.
std::vector<double> ratios(const std::vector<double>& a, const std::vector<double>& b);
/// Returns their median and 10-90 % range, "1.234 (1.200-1.250)".
std::string ratio_text(const std::vector<double>& a, const std::vector<double>& b);

/// Returns the wall-clock seconds of one call.
double seconds_of(const std::function<void()>& work);
/// Returns the seconds of each work in each round. The works take turns, after one call of each
/// that is not measured.
std::vector<std::vector<double>> interleaved_seconds(
    const std::vector<std::function<void()>>& works, int rounds);

/// Resident memory of this process in bytes, now and at its peak (VmHWM); 0 if unknown.
struct ProcessMemory {
  double now = 0, peak = 0;
};
ProcessMemory process_memory();

/// Prints commit, compiler, flags, instruction sets, GEMM backend, processor, threads, measured
/// peak.
void print_environment();

/// Returns model and batch of a benchmark, "d_model 384, 6 layers, ...".
std::string describe(const run::Config& config);

/// Throws ConfigError, which begins with `name`, if the model cannot be built.
void require_supported(const std::string& name, const ModelConfig& model);

/// Options of a benchmark that builds one model per attention kind.
struct ModelOptions {
  std::vector<std::string> kinds;
  int rounds;
  std::string config = {};
  std::vector<std::string> overrides = {};

  /// Adds CONFIG, --kinds, --set and --rounds.
  void add_to(CLI::App& app);
  run::Config load() const;
  /// Prints environment and configuration.
  void print_header() const;
};

/// Parses the command line and runs `body`. Returns the exit code: 0, 64 for a wrong command line,
/// or the code of an Error, which it prints to stderr after the program's name.
int run_program(CLI::App& app, int argc, char** argv, const std::function<void()>& body);

}  // namespace difftape::bench
