#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "train/run/config/writer.h"
#include "train/study/sweep/sweep_config.h"

namespace difftape::study {
namespace {

struct SweptArm {
  std::string name;
  std::vector<const run::Config*> runs;
};

std::vector<SweptArm> arms_of(const std::vector<SweepRun>& runs) {
  std::vector<SweptArm> arms;
  for (const SweepRun& run : runs) {
    auto arm = std::ranges::find(arms, run.base_arm, &SweptArm::name);
    if (arm == arms.end()) arm = arms.insert(arm, {run.base_arm, {}});
    arm->runs.push_back(&run.config());
  }
  return arms;
}

/// Returns whether the runs of two arms differ only in their names.
bool are_equal(const SweptArm& a, const SweptArm& b) {
  return std::ranges::equal(a.runs, b.runs, [](const auto* one, const auto* other) {
    return std::ranges::all_of(run::differences(*one, *other), [](const auto& difference) {
      return difference.key.starts_with("run.");
    });
  });
}

/// Returns the seeds that claims count besides seeds of these runs, but none of the runs has. A
/// claim about own learning rates may need the seeds of another sweep.
std::set<std::uint64_t> untrained_seeds(const ClaimsFile& claims,
                                        const std::vector<SweepRun>& runs) {
  std::set<std::uint64_t> trained, missing;
  for (const SweepRun& run : runs) trained.insert(run.config().run.seed);
  const std::vector<std::string> elsewhere = claims_elsewhere(claims, runs);
  for (const Claim& claim : claims.claims) {
    const bool is_here =
        std::ranges::find(elsewhere, claim.id) == elsewhere.end() && claim.own_lr.empty() &&
        std::ranges::any_of(trained, [&](auto seed) { return claim.counts(seed); });
    for (const std::uint64_t seed : claim.seeds)
      if (is_here && !trained.contains(seed)) missing.insert(seed);
  }
  return missing;
}

}  // namespace

std::vector<std::string> warnings_of(const SweepConfig& sweep) {
  std::vector<std::string> warnings;
  const std::vector<SweptArm> arms = arms_of(sweep.runs);
  for (auto arm = arms.begin(); arm != arms.end(); ++arm) {
    const auto same = std::find_if(arms.begin(), arm,
                                   [&](const SweptArm& before) { return are_equal(before, *arm); });
    if (same == arm) continue;
    warnings.push_back(fmt::format(
        "arms '{}' and '{}' have the same settings; set the keys in which they should differ",
        same->name, arm->name));
  }
  if (!sweep.claims) return warnings;
  const std::set<std::uint64_t> missing = untrained_seeds(*sweep.claims, sweep.runs);
  if (missing.empty()) return warnings;
  warnings.push_back(fmt::format(
      "{} counts seeds that this sweep does not train: {}; train them to decide its claims",
      sweep.claims->path, fmt::join(missing, ", ")));
  return warnings;
}

}  // namespace difftape::study
