#include "train/study/compare/claims/measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "train/study/compare/claims/arms.h"
#include "train/study/compare/claims/control.h"
#include "train/study/compare/curves.h"
#include "train/study/compare/tasks.h"

namespace difftape::study {

namespace {

/// Of one arm the complete runs by seed and learning rate.
using BySeed = std::map<std::uint64_t, std::map<double, const RunRecord*>>;

std::string list(const std::set<double>& lrs) { return fmt::format("{:g}", fmt::join(lrs, ", ")); }

/// The runs of an arm. Says in `reason` if two would be the same sample.
BySeed by_seed(const ArmRuns& arm, std::string& reason) {
  BySeed result;
  for (const RunRecord* run : arm.runs) {
    if (!run->complete()) continue;
    const auto [place, added] = result[run->seed].emplace(run->lr, run);
    if (added || !reason.empty()) continue;
    reason = fmt::format("{} has two runs of seed {} at lr {:g}: {} and {}", arm.name, run->seed,
                         run->lr, place->second->dir.string(), run->dir.string());
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
std::vector<const RunRecord*> runs_at(const BySeed& runs, std::uint64_t seed,
                                      const std::set<double>& lrs) {
  std::vector<const RunRecord*> found;
  const auto of_seed = runs.find(seed);
  if (of_seed == runs.end()) return found;
  for (const double lr : lrs) {
    const auto run = of_seed->second.find(lr);
    if (run == of_seed->second.end()) return {};
    found.push_back(run->second);
  }
  return found;
}

/// The quantity of the runs of one seed, on its axis. Says in `reason` why there is none.
double value_of(const std::vector<const RunRecord*>& runs, const Quantity& quantity,
                std::string& reason) {
  if (quantity.of_seed != nullptr) {
    const double value = on_scale(quantity.of_seed(runs), quantity.scale);
    if (!std::isfinite(value) && reason.empty()) {
      reason = fmt::format("seed {} of {} has no {}", runs.front()->seed, runs.front()->arm,
                           quantity.label);
    }
    return value;
  }
  double sum = 0;
  for (const RunRecord* run : runs) {
    const double value = on_scale(run->number(quantity), quantity.scale);
    sum += value;
    const bool counts = std::isfinite(value) && (run->finished() || quantity.of_diverged);
    if (counts || !reason.empty()) continue;
    reason = fmt::format("{} with seed {} at lr {:g} {} and has no {}", run->arm, run->seed,
                         run->lr, describe_state(run->status), quantity.label);
    if (runs.size() > 1) reason += "; let 'where' name learning rates at which no run diverges";
  }
  return sum / static_cast<double>(runs.size());
}

/// Why the two arms cannot be compared although both are there; empty if they can.
std::string why_not(const ArmRuns& arm, const ArmRuns& reference, const Quantity& quantity) {
  for (const ArmRuns* each : {&arm, &reference}) {
    if (each->runs.empty()) continue;  // a number
    const auto complete = std::ranges::count_if(each->runs, &RunRecord::complete);
    if (complete == 0) return fmt::format("no run of {} has ended", each->name);
    const bool logged = std::ranges::any_of(each->runs, [&](const RunRecord* run) {
      return has_metric(run->metrics, quantity.metric);
    });
    const bool failed = std::ranges::all_of(each->runs, &RunRecord::diverged);
    if (!logged && !(failed && quantity.of_diverged))
      return fmt::format("no run of {} logged {}", each->name, quantity.metric);
    if (std::string mixed = mixture(*each); !mixed.empty()) return mixed;
  }
  return reference.runs.empty() ? "" : task_difference(*arm.runs.front(), *reference.runs.front());
}

/// The seeds that may count, in the order in which they were named; all if none was.
std::vector<std::uint64_t> candidates(const std::vector<std::uint64_t>& named, const BySeed& runs) {
  if (!named.empty()) return named;
  std::vector<std::uint64_t> seeds;
  for (const auto& [seed, by_lr] : runs) seeds.push_back(seed);
  return seeds;
}

/// Fills the pairs, of `seeds` if they are named.
void compare(const BySeed& a, const BySeed& b, const Claim& claim, const ClaimsFile& file,
             const std::vector<std::uint64_t>& seeds, Measured& measured) {
  const Quantity& quantity = *claim.metric;
  const std::set<double> of_a = lrs_of(a), of_b = claim.has_value() ? of_a : lrs_of(b);
  std::set<double> lrs;
  std::ranges::set_intersection(of_a, of_b, std::inserter(lrs, lrs.end()));
  if (lrs.empty()) {
    measured.reason = fmt::format("{} and {} share no learning rate ({} and {})", measured.arm,
                                  measured.reference, list(of_a), list(of_b));
  } else if (quantity.of_seed != nullptr && lrs.size() < 2) {
    measured.reason =
        fmt::format("{} needs two learning rates or more; there is {}", quantity.label, list(lrs));
  }
  if (!measured.reason.empty()) return;
  measured.where = "lr " + list(lrs);
  measured.stated_before = true;
  for (const std::uint64_t seed : candidates(seeds, a)) {
    const auto first = runs_at(a, seed, lrs), second = runs_at(b, seed, lrs);
    if (first.empty() || (second.empty() && !claim.has_value())) {
      if (file.looks) break;  // a look is at the first seeds, without a gap
      continue;
    }
    measured.seeds.push_back(seed);
    measured.a.push_back(value_of(first, quantity, measured.reason));
    measured.b.push_back(claim.has_value() ? on_scale(claim.value, quantity.scale)
                                           : value_of(second, quantity, measured.reason));
    for (const auto* each : {&first, &second}) {
      for (const RunRecord* run : *each) {
        measured.stated_before = measured.stated_before && run->config("run.claims") == file.digest;
      }
    }
  }
  if (measured.seeds.empty() && measured.reason.empty()) {
    measured.reason =
        seeds.empty()
            ? fmt::format("{} and {} have no seed in common", measured.arm, measured.reference)
            : fmt::format("none of the seeds {} was trained in both {} and {}",
                          fmt::join(seeds, ", "), measured.arm, measured.reference);
  }
}

/// The numbers of the first two arms of a claim, of `seeds` if they are named.
Measured measure_pair(const Claim& claim, const ClaimsFile& file,
                      const std::vector<std::uint64_t>& seeds,
                      std::span<const RunRecord* const> runs) {
  Measured measured;
  measured.planned = std::ssize(file.seeds);
  const auto pair = find_arms(claim, file, runs, measured.reason);
  if (!pair) return measured;
  const auto& [arm, reference] = *pair;
  measured.arm = arm.name;
  measured.reference = reference.name;
  measured.reason = why_not(arm, reference, *claim.metric);
  if (!measured.reason.empty()) return measured;
  const BySeed a = by_seed(arm, measured.reason), b = by_seed(reference, measured.reason);
  if (measured.reason.empty()) compare(a, b, claim, file, seeds, measured);
  for (const Control& control : claim.controls) {
    if (measured.failed_control.empty() && measured.reason.empty())
      measured.failed_control = failed_control(control, file, claim, runs, measured.reason);
  }
  if (!measured.reason.empty()) {
    measured.seeds.clear();
    measured.a.clear();
    measured.b.clear();
    return measured;
  }
  const auto failed = [](const ArmRuns& each) {
    return std::ranges::none_of(each.runs, &RunRecord::finished);
  };
  if (failed(arm) && failed(reference)) {
    measured.failed_control = fmt::format("all runs of {}{} diverged", arm.name,
                                          claim.has_value() ? "" : " and " + reference.name);
  }
  return measured;
}

std::string name_of_difference(const Measured& pair, Scale scale) {
  return scale == Scale::ratio ? fmt::format("{} over {}", pair.arm, pair.reference)
         : scale == Scale::root
             ? fmt::format("root of {} less that of {}", pair.arm, pair.reference)
             : fmt::format("{} less {}", pair.arm, pair.reference);
}

/// The differences of two pairs with the same seeds, the first beside the second.
Measured compare_differences(const Measured& first, const Measured& second, Scale scale) {
  Measured both = first;
  both.arm = name_of_difference(first, scale);
  both.reference = name_of_difference(second, scale);
  if (first.where != second.where) {
    both.reason = fmt::format("{} is known at {}, {} at {}", both.arm, first.where, both.reference,
                              second.where);
    both.seeds.clear();
    both.a.clear();
    both.b.clear();
    return both;
  }
  both.stated_before = first.stated_before && second.stated_before;
  std::ranges::transform(first.bounds, second.bounds, both.bounds.begin(), [](Bound a, Bound b) {
    return Bound{a.may_be_lower || b.may_be_higher, a.may_be_higher || b.may_be_lower};
  });
  if (first.failed_control.empty()) both.failed_control = second.failed_control;
  std::ranges::transform(first.a, first.b, both.a.begin(), std::minus());
  std::ranges::transform(second.a, second.b, both.b.begin(), std::minus());
  return both;
}

/// The numbers of a claim without what follows from them.
Measured measure_arms(const Claim& claim, const ClaimsFile& file,
                      std::span<const RunRecord* const> runs) {
  Measured first = measure_pair(claim, file, file.seeds, runs);
  if (!claim.compared_with || !first.reason.empty()) return first;
  Claim other = claim;
  other.arm = claim.compared_with->arm;
  other.reference = claim.compared_with->reference;
  Measured second = measure_pair(other, file, first.seeds, runs);
  if (!second.reason.empty()) return second;
  first = measure_pair(claim, file, second.seeds, runs);  // the seeds of both
  return compare_differences(first, second, claim.metric->scale);
}

}  // namespace

Bound Measured::bound(std::size_t pairs) const {
  const auto some = std::span(bounds).first(std::min(pairs, bounds.size()));
  return {std::ranges::any_of(some, &Bound::may_be_lower),
          std::ranges::any_of(some, &Bound::may_be_higher)};
}

Measured measure(const Claim& claim, const ClaimsFile& file,
                 std::span<const RunRecord* const> runs) {
  Measured measured = measure_arms(claim, file, runs);
  if (measured.seeds.empty()) return measured;
  const Scale scale = claim.metric->scale;
  if (measured.failed_control.empty() && measured.a == measured.b) {
    measured.failed_control =
        claim.compared_with
            ? fmt::format("{}: both differences of every seed are the same", claim.metric->label)
            : fmt::format("{}: both runs of every pair have the same number", claim.metric->label);
  }
  measured.paired = stats::paired_difference(measured.a, measured.b);
  // A difference of roots is no root of anything.
  const Scale read = claim.compared_with && scale == Scale::root ? Scale::difference : scale;
  measured.arm_mean = mean_from_scale(measured.a, read);
  measured.reference_mean = mean_from_scale(measured.b, read);
  return measured;
}

}  // namespace difftape::study
