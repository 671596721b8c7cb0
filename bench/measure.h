#pragma once
// What the benchmarks share: quantiles of repeated measurements, and the head of their output.

#include <functional>
#include <vector>

namespace difftape::bench {

/// The q-quantile, 0 to 1, interpolated between order statistics.
double quantile(std::vector<double> values, double q);

/// Wall-clock seconds of one call.
double seconds_of(const std::function<void()>& work);

/// Commit, compiler, instruction sets, matrix engine, processor, threads and measured peak.
void print_environment();

}  // namespace difftape::bench
