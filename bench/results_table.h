#pragma once
// The results of benchmarks as a table.

#include <string>
#include <utility>
#include <vector>

#include "bench/interleaved.h"

namespace difftape::bench {

/// Candidates measured together, and the tokens per step.
struct CandidateGroup {
  std::string label;  ///< the value that distinguishes it, "512"; empty for a single group
  double tokens = 0;
  BenchmarkResult result;
};

/// Returns a table of milliseconds per step (median, 10 %, 90 %), microseconds per token, tokens
/// per second, fraction of the FMA peak, and memory in MB (peak and at the start). The last columns
/// are the speed relative to the first candidate of the group (median, 10 %, 90 % of rounds). Notes
/// below compare the first candidate with the best of each framework, and list versions and
/// candidates left out. `label` heads the column of groups.
std::string results_table(const std::vector<CandidateGroup>& groups, const std::string& label);

/// Returns a table of the seconds to the first step.
std::string start_table(const BenchmarkResult& result);

}  // namespace difftape::bench
