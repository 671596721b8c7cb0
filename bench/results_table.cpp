#include "bench/results_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "bench/measure.h"
#include "train/system/text_table.h"

namespace difftape::bench {
namespace {

using Row = std::vector<std::string>;

/// Returns the speed of `a` over `b` in each round.
std::vector<double> speed(const Result& a, const Result& b) {
  return ratios(b.round_medians, a.round_medians);
}

void add_quantiles(Row& row, const std::vector<double>& values, double scale, int digits) {
  for (const double q : {0.5, 0.1, 0.9})
    row.push_back(fmt::format("{:.{}f}", scale * stats::quantile(values, q), digits));
}

Row row_of(const Result& each, const CandidateGroup& group) {
  const double seconds = stats::quantile(each.seconds, 0.5);
  const auto megabytes = [](double bytes) {
    return bytes > 0 ? fmt::format("{:.0f}", bytes / 1e6) : "-";
  };
  Row row{each.candidate.name, each.parameters ? system::grouped(*each.parameters) : "-"};
  add_quantiles(row, each.seconds, 1e3, 1);
  row.push_back(fmt::format("{:.1f}", 1e6 * seconds / group.tokens));
  row.push_back(system::grouped(std::llround(group.tokens / seconds)));
  row.push_back(each.candidate.flops_per_step > 0
                    ? fmt::format("{:.1f} %", 100 * stats::quantile(each.peak_fraction, 0.5))
                    : "-");
  row.push_back(megabytes(each.peak_bytes));
  row.push_back(megabytes(each.idle_bytes));
  add_quantiles(row, speed(each, group.result.finished.front()), 1, 3);
  return row;
}

/// "difftape f32 is 1.31 (1.28-1.35) times as fast as the best of PyTorch f32, PyTorch f32 eager".
std::string verdicts(const BenchmarkResult& result, const std::string& where) {
  if (result.finished.empty()) return "";
  const Result& first = result.finished.front();
  std::map<std::string, const Result*> best;
  std::vector<std::string> frameworks;
  for (const Result& each : result.finished) {
    if (each.candidate.framework == first.candidate.framework) continue;
    const Result*& leader = best[each.candidate.framework];
    if (leader == nullptr) frameworks.push_back(each.candidate.framework);
    if (leader == nullptr ||
        stats::quantile(each.round_medians, 0.5) < stats::quantile(leader->round_medians, 0.5))
      leader = &each;
  }
  std::string text;
  for (const std::string& framework : frameworks) {
    const Result& leader = *best[framework];
    const std::vector<double> speedup = speed(first, leader);
    text += fmt::format("{}{} is {:.2f} ({:.2f}-{:.2f}) times as fast as {}\n", where,
                        first.candidate.name, stats::quantile(speedup, 0.5),
                        stats::quantile(speedup, 0.1), stats::quantile(speedup, 0.9),
                        leader.candidate.name);
  }
  return text;
}

/// Returns the bytes that the busiest of P processes sends. The lower bound follows from one
/// element: P - 1 processes must pass on their part of its gradient, and its new value must reach P
/// - 1 processes. So N elements take 2 (P - 1) N transfers, of which each process sends one part in
/// P.
std::string traffic(const Result& result) {
  const auto processes = static_cast<double>(result.candidate.processes);
  if (processes < 2 || !result.parameters) return "";
  const double bound =
      2 * (processes - 1) / processes * static_cast<double>(*result.parameters) * sizeof(real);
  return fmt::format(
      "{}: a process sends at most {:.2f} MB per step, {:.3f} times the lower bound {:.2f} MB\n",
      result.candidate.name, result.sent_bytes / 1e6, result.sent_bytes / bound, bound / 1e6);
}

void collect_notes(const BenchmarkResult& result, const std::string& where,
                   std::set<std::string>& seen, std::string& text) {
  const auto add = [&](const std::string& line) {
    if (seen.insert(line).second) text += line;
  };
  for (const Result& each : result.finished)
    if (!each.version.empty()) add(each.version + "\n");
  for (const Result& each : result.finished)
    if (const std::string sent = traffic(each); !sent.empty()) add(where + sent);
  for (const std::string& line : result.left_out) add(fmt::format("{}left out: {}\n", where, line));
}

}  // namespace

std::string results_table(const std::vector<CandidateGroup>& groups, const std::string& label) {
  const bool labelled = groups.size() > 1;
  system::Table table{{{"", "candidate", true},
                       {"", "parameters"},
                       {"ms per step", "median"},
                       {"ms per step", "10 %"},
                       {"ms per step", "90 %"},
                       {"", "us/token"},
                       {"", "tokens/s"},
                       {"", "of peak"},
                       {"memory, MB", "peak"},
                       {"memory, MB", "idle"},
                       {"speed, first = 1", "median"},
                       {"speed, first = 1", "10 %"},
                       {"speed, first = 1", "90 %"}},
                      {}};
  if (labelled) table.columns.insert(table.columns.begin(), {"", label});
  std::string speeds, notes;
  std::set<std::string> seen;
  for (const CandidateGroup& group : groups) {
    const std::string where = labelled ? fmt::format("{} {}: ", label, group.label) : "";
    for (const Result& each : group.result.finished) {
      Row row = row_of(each, group);
      if (labelled) row.insert(row.begin(), group.label);
      table.rows.push_back(row);
    }
    speeds += verdicts(group.result, where);
    collect_notes(group.result, where, seen, notes);
  }
  return fmt::format("{}\n{}{}", to_text(table), speeds, notes);
}

std::string start_table(const BenchmarkResult& result) {
  system::Table table{{{"", "candidate", true},
                       {"seconds to the first step", "median"},
                       {"seconds to the first step", "10 %"},
                       {"seconds to the first step", "90 %"}},
                      {}};
  for (const Result& each : result.finished) {
    Row row{each.candidate.name};
    add_quantiles(row, each.seconds, 1, 3);
    table.rows.push_back(row);
  }
  std::string notes;
  std::set<std::string> seen;
  collect_notes(result, "", seen, notes);
  return fmt::format("{}\n{}{}", to_text(table), verdicts(result, ""), notes);
}

}  // namespace difftape::bench
