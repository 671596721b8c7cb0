#include "train/study/compare/claims/control.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "train/stats/descriptive.h"
#include "train/study/compare/claims/arms.h"

namespace difftape::study {

std::string failed_control(const Control& control, const ClaimsFile& file, const Claim& claim,
                           std::span<const RunRecord* const> runs, std::string& reason) {
  const std::vector<ArmRuns> found = arms_called(control.arm, file, claim.where, runs, reason);
  if (found.empty()) return "";
  std::vector<double> values;
  for (const RunRecord* run : found.front().runs) {
    const bool counts = claim.seeds.empty() || std::ranges::count(claim.seeds, run->seed) > 0;
    if (counts && run->complete()) values.push_back(run->number(*control.metric));
  }
  const double mean = stats::mean(values);
  if (std::isnan(mean)) {
    reason =
        fmt::format("control: a run of {} has no {}", found.front().name, control.metric->label);
    return "";
  }
  if (mean >= control.from && mean <= control.to) return "";
  const Quantity& metric = *control.metric;
  return fmt::format(
      "{}: {} has {:.3g} on average; need {}", metric.label, found.front().name, mean,
      std::isinf(control.to)     ? fmt::format("{:g} or more", control.from)
      : std::isinf(control.from) ? fmt::format("{:g} or less", control.to)
                                 : fmt::format("{:g} to {:g}", control.from, control.to));
}

}  // namespace difftape::study
