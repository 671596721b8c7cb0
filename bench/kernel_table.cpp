#include "bench/kernel_table.h"

#include <fmt/core.h>

#include <algorithm>

#include "bench/measure.h"

namespace difftape::bench {
namespace {

using Run = benchmark::BenchmarkReporter::Run;

/// Median of a counter in `unit`s, or "-" where it is not counted.
std::string median_of(const std::vector<Run>& runs, const std::string& counter, double unit,
                      const char* suffix) {
  std::vector<double> values;
  for (const Run& run : runs) {
    const auto found = run.counters.find(counter);
    if (found != run.counters.end()) values.push_back(found->second);
  }
  return values.empty() ? "-"
                        : fmt::format("{:.1f}{}", stats::quantile(values, 0.5) / unit, suffix);
}

}  // namespace

void KernelTable::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (run.run_type != Run::RT_Iteration) continue;
    std::string name = run.run_name.function_name;
    if (!run.run_name.args.empty()) name += " " + run.run_name.args;
    const auto known = std::find_if(kernels_.begin(), kernels_.end(),
                                    [&](const auto& kernel) { return kernel.first == name; });
    if (known != kernels_.end()) {
      known->second.push_back(run);
    } else {
      kernels_.push_back({name, {run}});
    }
  }
}

void KernelTable::Finalize() {
  system::Table table{{{"", "kernel", true},
                       {"us", "median"},
                       {"us", "10 %"},
                       {"us", "90 %"},
                       {"", "GFLOP/s"},
                       {"", "of peak"},
                       {"", "GB/s"}},
                      {}};
  for (const auto& [name, runs] : kernels_) {
    std::vector<double> seconds;
    for (const Run& run : runs)
      seconds.push_back(run.real_accumulated_time / static_cast<double>(run.iterations));
    const auto us = [&](double q) {
      return fmt::format("{:.1f}", 1e6 * stats::quantile(seconds, q));
    };
    table.rows.push_back({name, us(0.5), us(0.1), us(0.9), median_of(runs, "GFLOP/s", 1, ""),
                          median_of(runs, "of_peak", 0.01, " %"),
                          median_of(runs, "bytes_per_second", 1e9, "")});
  }
  fmt::print("{}", to_text(table));
}

}  // namespace difftape::bench
