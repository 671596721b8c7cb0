#pragma once
// What Google Benchmark measured, as one table.

#include <benchmark/benchmark.h>

#include "train/system/text_table.h"

namespace difftape::bench {

/// Collects the repetitions of every benchmark; at the end prints microseconds an iteration
/// (median, 10 %, 90 %) and the medians of the counters "GFLOP/s", "of_peak" and bytes per second.
class KernelTable : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override;

 private:
  std::vector<std::pair<std::string, std::vector<Run>>> kernels_;  ///< in the order of first runs
};

}  // namespace difftape::bench
