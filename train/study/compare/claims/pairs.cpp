#include "train/study/compare/claims/pairs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "train/study/compare/claims/arms.h"
#include "train/study/compare/claims/own_lr.h"
#include "train/study/compare/measures.h"
#include "train/study/compare/tasks.h"

namespace difftape::study {

namespace {

using Runs = std::vector<const RunRecord*>;
/// Of one arm the runs that count, by seed and by what Selected::rates says.
using BySeed = std::map<std::uint64_t, std::map<double, const RunRecord*>>;

std::string list(const std::set<double>& lrs) { return fmt::format("{:g}", fmt::join(lrs, ", ")); }

/// Says in `reason` if two runs would be the same sample.
BySeed by_seed(const Selected& selected, std::string& reason) {
  BySeed result;
  for (std::size_t i = 0; i < selected.rates.size(); ++i) {
    const RunRecord* run = selected.arm.runs[i];
    const auto [place, added] = result[run->seed].emplace(selected.rates[i], run);
    if (added || !reason.empty()) continue;
    reason = fmt::format("{} has two runs of seed {} at lr {:g}: {} and {}", selected.arm.name,
                         run->seed, run->lr, place->second->dir.string(), run->dir.string());
  }
  return result;
}

std::set<double> lrs_of(const BySeed& runs) {
  std::set<double> lrs;
  for (const auto& [seed, by_lr] : runs) {
    for (const auto& [lr, run] : by_lr) lrs.insert(lr);
  }
  return lrs;
}

/// The runs of a seed at all these learning rates; nothing if one is missing.
Runs runs_at(const BySeed& runs, std::uint64_t seed, const std::vector<double>& lrs) {
  Runs found;
  const auto of_seed = runs.find(seed);
  if (of_seed == runs.end()) return found;
  for (const double lr : lrs) {
    const auto run = of_seed->second.find(lr);
    if (run == of_seed->second.end()) return {};
    found.push_back(run->second);
  }
  return found;
}

/// The metric of the runs of one seed, on its axis. Says in `reason` why there is none.
double value_of(const Runs& runs, const Quantity& metric, std::string& reason) {
  if (metric.of_seed != nullptr) {
    const double value = on_scale(metric.of_seed(runs), metric.scale);
    if (!std::isfinite(value) && reason.empty()) {
      reason = fmt::format("seed {} of {} has no {}", runs.front()->seed, runs.front()->arm,
                           metric.label);
    }
    return value;
  }
  double sum = 0;
  for (const RunRecord* run : runs) {
    const double value = on_scale(run->number(metric), metric.scale);
    sum += value;
    const bool counts = std::isfinite(value) && (run->finished() || metric.of_diverged);
    if (counts || !reason.empty()) continue;
    reason = fmt::format("{} with seed {} at lr {:g} {} and has no {}", run->arm, run->seed,
                         run->lr, describe_state(run->status), metric.label);
    if (runs.size() > 1) reason += "; let 'where' name learning rates at which no run diverges";
  }
  return sum / static_cast<double>(runs.size());
}

/// What the metric is in each group of held-out documents, where it is a mean over documents; empty
/// if it is not, or was not stored.
std::vector<double> groups_of(const Runs& runs, const Quantity& metric) {
  const bool penalty = metric.of_seed == measures::lr_penalty;
  const bool loss = metric.of_run == measures::val_loss || metric.of_run == measures::final_loss;
  if (!penalty && !loss) return {};
  std::vector<double> groups;
  for (const RunRecord* run : runs) {
    const std::vector<double> losses = run->group_losses().loss;
    if (run == runs.front()) groups.resize(losses.size());
    const bool capped = run->number("val_loss") != run->number("final_loss");
    if (losses.size() != groups.size() || !run->finished() || capped) return {};
    const double factor = !penalty              ? 1 / static_cast<double>(runs.size())
                          : run == runs.front() ? -1
                                                : 1;
    for (std::size_t g = 0; g < groups.size(); ++g) groups[g] += factor * losses[g];
  }
  return groups;
}

/// Why the two arms cannot be compared although both are there; empty if they can.
std::string why_not(const ArmRuns& arm, const ArmRuns& reference, const Quantity& metric) {
  for (const ArmRuns* each : {&arm, &reference}) {
    if (each->runs.empty()) continue;  // a number
    const bool logged =
        std::ranges::any_of(each->runs, [&](const RunRecord* run) { return run->logged(metric); });
    const bool failed = std::ranges::all_of(each->runs, &RunRecord::diverged);
    if (!logged && !(failed && metric.of_diverged))
      return fmt::format("no run of {} logged {}", each->name, metric.metric);
    if (std::string mixed = mixture(*each); !mixed.empty()) return mixed;
  }
  return reference.runs.empty() ? "" : task_difference(*arm.runs.front(), *reference.runs.front());
}

void add_pair(const Claim& claim, const ClaimsFile& file, const Runs& first, const Runs& second,
              Pairs& pairs) {
  const Quantity& metric = *claim.metric;
  pairs.seeds.push_back(first.front()->seed);
  pairs.a.push_back(value_of(first, metric, pairs.reason));
  pairs.b.push_back(claim.has_value() ? on_scale(claim.value, metric.scale)
                                      : value_of(second, metric, pairs.reason));
  std::vector<double> groups = groups_of(first, metric);
  if (!second.empty()) {
    const std::vector<double> other = groups_of(second, metric);
    if (other.size() != groups.size()) groups.clear();
    for (std::size_t g = 0; g < groups.size(); ++g) groups[g] -= other[g];
  }
  pairs.groups.push_back(std::move(groups));
  for (const auto* each : {&first, &second}) {
    for (const RunRecord* run : *each) {
      pairs.stated_before = pairs.stated_before && run->config.run.claims == file.digest;
    }
  }
}

/// The seeds of pairs, in the order in which they were named; all if none was.
Seeds candidates(const Seeds& named, const BySeed& runs) {
  if (!named.empty()) return named;
  Seeds seeds;
  for (const auto& [seed, by_lr] : runs) seeds.push_back(seed);
  return seeds;
}

/// Fills the pairs, of `seeds` if they are named.
void compare(const Selected& arm, const Selected& reference, const Claim& claim,
             const ClaimsFile& file, const Seeds& seeds, Pairs& pairs) {
  const BySeed a = by_seed(arm, pairs.reason), b = by_seed(reference, pairs.reason);
  const std::set<double> of_a = lrs_of(a), of_b = claim.has_value() ? of_a : lrs_of(b);
  std::vector<double> lrs;
  std::ranges::set_intersection(of_a, of_b, std::back_inserter(lrs));
  if (!pairs.reason.empty()) return;
  if (lrs.empty()) {
    pairs.reason = fmt::format("{} and {} share no learning rate ({} and {})", pairs.arm,
                               pairs.reference, list(of_a), list(of_b));
  } else if (claim.metric->of_seed != nullptr && lrs.size() < 2) {
    pairs.reason = fmt::format("{} needs two learning rates or more; there is {:g}",
                               claim.metric->label, lrs.front());
  }
  if (!pairs.reason.empty()) return;
  pairs.where = rates_text(claim, arm, reference, lrs);
  pairs.stated_before = true;
  for (const std::uint64_t seed : candidates(seeds, a)) {
    const Runs first = runs_at(a, seed, lrs), second = runs_at(b, seed, lrs);
    if (first.empty() || (second.empty() && !claim.has_value())) continue;
    add_pair(claim, file, first, second, pairs);
  }
  if (!pairs.seeds.empty() || !pairs.reason.empty()) return;
  pairs.reason = seeds.empty()
                     ? fmt::format("{} and {} have no seed in common", pairs.arm, pairs.reference)
                     : fmt::format("none of the seeds {} was trained in both {} and {}",
                                   fmt::join(seeds, ", "), pairs.arm, pairs.reference);
}

/// Keeps what tells why there are no pairs.
void drop_pairs(Pairs& pairs) {
  pairs.seeds.clear();
  pairs.a.clear();
  pairs.b.clear();
  pairs.groups.clear();
}

/// The numbers of the first two arms of a claim.
Pairs pairs_of_arms(const Claim& claim, const ClaimsFile& file, const Seeds& seeds,
                    std::span<const RunRecord* const> runs) {
  Pairs pairs;
  const auto found = find_arms(claim, file, runs, pairs.reason);
  if (!found) return pairs;
  pairs.arm = found->first.name;
  pairs.reference = found->second.name;
  const Selected arm = select_runs(found->first, claim, file, seeds, pairs.reason);
  const Selected reference = claim.has_value() || !pairs.reason.empty()
                                 ? Selected{found->second, {}}
                                 : select_runs(found->second, claim, file, seeds, pairs.reason);
  if (pairs.reason.empty()) pairs.reason = why_not(arm.arm, reference.arm, *claim.metric);
  if (!pairs.reason.empty()) return pairs;
  const ArmRuns& sized = claim.has_value() ? arm.arm : reference.arm;
  pairs.parameters = static_cast<double>(sized.runs.front()->status.parameters);
  compare(arm, reference, claim, file, seeds, pairs);
  if (!pairs.reason.empty()) drop_pairs(pairs);
  const auto diverged = [](const RunRecord* run) { return !run->finished(); };
  pairs.all_diverged = std::ranges::all_of(arm.arm.runs, diverged) &&
                       std::ranges::all_of(reference.arm.runs, diverged);
  return pairs;
}

std::string name_of_difference(const Pairs& pairs, Scale scale) {
  return scale == Scale::ratio ? fmt::format("{} over {}", pairs.arm, pairs.reference)
         : scale == Scale::root
             ? fmt::format("root of {} less that of {}", pairs.arm, pairs.reference)
             : fmt::format("{} less {}", pairs.arm, pairs.reference);
}

/// The differences of two pairs with the same seeds, the first beside the second.
Pairs beside(const Pairs& first, const Pairs& second, const Claim& claim) {
  const Scale scale = claim.metric->scale;
  Pairs both = first;
  both.arm = name_of_difference(first, scale);
  both.reference = name_of_difference(second, scale);
  const bool one_regime = claim.where == claim.compared_with->where && claim.own_lr.empty();
  if (first.where != second.where && one_regime) {
    both.reason = fmt::format("{} is known at {}, {} at {}", both.arm, first.where, both.reference,
                              second.where);
    drop_pairs(both);
    return both;
  }
  if (first.where != second.where) both.where += fmt::format(" and {}", second.where);
  both.stated_before = first.stated_before && second.stated_before;
  both.all_diverged = first.all_diverged || second.all_diverged;
  both.a = first.gaps();
  both.b = second.gaps();
  for (std::size_t i = 0; i < both.groups.size(); ++i) {
    const std::vector<double>& other = second.groups[i];
    if (other.size() != both.groups[i].size()) both.groups[i].clear();
    std::ranges::transform(both.groups[i], other, both.groups[i].begin(), std::minus());
  }
  return both;
}

}  // namespace

std::vector<double> Pairs::gaps() const {
  std::vector<double> differences(a.size());
  std::ranges::transform(a, b, differences.begin(), std::minus());
  return differences;
}

Pairs find_pairs(const Claim& claim, const ClaimsFile& file, const Seeds& seeds,
                 std::span<const RunRecord* const> runs) {
  Pairs first = pairs_of_arms(claim, file, seeds, runs);
  if (!claim.compared_with || !first.reason.empty()) return first;
  Claim other = claim;
  other.arm = claim.compared_with->arm;
  other.reference = claim.compared_with->reference;
  other.where = claim.compared_with->where;
  const Pairs second = pairs_of_arms(other, file, first.seeds, runs);
  if (!second.reason.empty()) return second;
  first = pairs_of_arms(claim, file, second.seeds, runs);  // the seeds of both
  return beside(first, second, claim);
}

}  // namespace difftape::study
