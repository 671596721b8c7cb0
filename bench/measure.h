#pragma once
// What the benchmarks share: ratios of repeated measurements (their quantiles are those of
// train/stats), the memory of this process, the head of their output, and how their programs end.

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "train/run/config/config.h"
#include "train/stats/descriptive.h"

namespace difftape::bench {

/// a / b element by element; as many as the shorter one has.
std::vector<double> ratios(const std::vector<double>& a, const std::vector<double>& b);

/// Wall-clock seconds of one call.
double seconds_of(const std::function<void()>& work);

/// Resident memory of this process in bytes: now, and at most since it started (VmHWM). 0 where
/// the system does not say.
struct ProcessMemory {
  double now = 0, peak = 0;
};
ProcessMemory process_memory();

/// Commit, compiler, flags, instruction sets, GEMM backend, processor, threads, measured peak.
void print_environment();

/// "d_model 384, 6 layers, ...": the model and the batch of a benchmark.
std::string describe(const run::Config& config);

/// Parses the command line and runs `body`. What main returns: 0, 64 for a wrong command line, or
/// the code of the Error, which goes to stderr after the name of the program.
int run_program(CLI::App& app, int argc, char** argv, const std::function<void()>& body);

}  // namespace difftape::bench
