#pragma once
// The results of benchmarks as a table.

#include <string>
#include <utility>
#include <vector>

#include "bench/interleaved.h"

namespace difftape::bench {

/// Candidates measured together, and the tokens of a step there.
struct CandidateGroup {
  std::string label;  ///< what is different in it, "512"; empty if there is one group
  double tokens = 0;
  BenchmarkResult result;
};

/// Milliseconds a step (median, 10 %, 90 %), microseconds a token, tokens per second, share of the
/// FMA peak, memory of the process in MB (at most, and before it built anything), and speed
/// relative to the first candidate of the group, round by round (median, 10 %, 90 %). Below: how
/// many times as fast the first is as the best of every other framework, the versions, what was
/// left out and why. `label` heads the column of groups.
std::string results_table(const std::vector<CandidateGroup>& groups, const std::string& label);

/// The same for the time to the first step: seconds only.
std::string start_table(const BenchmarkResult& result);

}  // namespace difftape::bench
