// Pairs the values of two arms of one size by seed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "train/study/compare/claims/measure.h"
#include "train/study/compare/study.h"

namespace difftape::study {

namespace {

using Runs = std::vector<const Row*>;
/// Runs of one arm that count, by seed and by Selected::rates.
using BySeed = std::map<std::uint64_t, std::map<double, const Row*>>;

BySeed by_seed(const Selected& selected) {
  BySeed result;
  for (std::size_t i = 0; i < selected.rates.size(); ++i) {
    const Row* run = selected.arm.runs[i];
    const auto [place, added] = result[run->seed].emplace(selected.rates[i], run);
    if (added) continue;
    throw NoNumbers("{} has two runs of seed {} at lr {:g}: {} and {}", selected.arm.name,
                    run->seed, run->lr, place->second->dir.string(), run->dir.string());
  }
  return result;
}

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

double value_of(const Runs& runs, const Quantity& metric) {
  if (metric.is_of_seed()) {
    const double value = on_scale(metric.of_seed(runs), metric.scale);
    if (std::isfinite(value)) return value;
    throw NoNumbers("seed {} of {} has no value of {}", runs.front()->seed, runs.front()->arm,
                    metric.label);
  }
  double sum = 0;
  for (const Row* run : runs) {
    const double value = on_scale(run->number(metric), metric.scale);
    sum += value;
    if (std::isfinite(value) && (run->finished() || metric.of_diverged)) continue;
    throw NoNumbers(
        "{} with seed {} at lr {:g} {} and has no value of {}{}", run->arm, run->seed, run->lr,
        describe_state(run->status), metric.label,
        runs.size() > 1 ? "; select learning rates at which no run diverges with 'where'" : "");
  }
  return sum / static_cast<double>(runs.size());
}

std::vector<double> less(std::vector<double> a, const std::vector<double>& b) {
  std::ranges::transform(a, b, a.begin(), std::minus());
  return a;
}

/// Throws NoNumbers if the two arms exist but cannot be compared.
void require_comparable(const ArmRuns& arm, const ArmRuns& reference, const Quantity& metric) {
  for (const ArmRuns* each : {&arm, &reference}) {
    const bool logged =
        std::ranges::any_of(each->runs, [&](const Row* run) { return run->logged(metric); });
    const bool failed = std::ranges::all_of(each->runs, &Row::diverged);
    if (!logged && !(failed && metric.of_diverged))
      throw NoNumbers("no run of {} logged {}", each->name, metric.metric);
    require_one_population(*each);
  }
  const std::string difference = task_difference(*arm.runs.front(), *reference.runs.front());
  if (!difference.empty()) throw NoNumbers(difference);
}

void add_pair(const Claim& claim, const ClaimsFile& file, const Runs& first, const Runs& second,
              Pairs& pairs) {
  const Quantity& metric = *claim.metric;
  pairs.seeds.push_back(first.front()->seed);
  pairs.a.push_back(value_of(first, metric));
  pairs.b.push_back(value_of(second, metric));
  for (const Runs* each : {&first, &second}) {
    pairs.stated_before = pairs.stated_before && std::ranges::all_of(*each, [&](const auto* run) {
                            return run->fact("claims") == file.digest;
                          });
  }
}

/// Returns the learning rates, or multiples of their own, that both arms have.
std::vector<double> shared_rates(const Selected& a, const Selected& b, const Claim& claim,
                                 const Pairs& pairs) {
  const auto rates_of = [](const Selected& of) {
    return std::set(of.rates.begin(), of.rates.end());
  };
  const std::set<double> of_a = rates_of(a), of_b = rates_of(b);
  std::vector<double> shared;
  std::ranges::set_intersection(of_a, of_b, std::back_inserter(shared));
  if (shared.empty()) {
    throw NoNumbers("{} and {} have no common learning rate ({:g} and {:g})", pairs.arm,
                    pairs.reference, fmt::join(of_a, ", "), fmt::join(of_b, ", "));
  }
  if (claim.metric->is_of_seed() && shared.size() < 2) {
    throw NoNumbers("{} needs at least two learning rates, but there is only {:g}",
                    claim.metric->label, shared.front());
  }
  return shared;
}

/// Returns "lr 0.001, 0.01", or for own rates "own and 4 x own lr (v2 0.0123, softmax 0.008)".
std::string rates_text(const Claim& claim, const Selected& arm, const Selected& reference,
                       const std::vector<double>& rates) {
  if (claim.own_lr.empty()) return fmt::format("lr {:g}", fmt::join(rates, ", "));
  std::vector<std::string> multiples;
  for (const double factor : claim.own_lr)
    multiples.push_back(factor == 1 ? "own" : fmt::format("{:g} x own", factor));
  return fmt::format("{} lr ({} {:g}, {} {:g})", fmt::join(multiples, " and "), arm.arm.name,
                     arm.own, reference.arm.name, reference.own);
}

/// Fills the pairs, restricted to `seeds` in their order unless they are empty.
void compare(const Selected& arm, const Selected& reference, const Claim& claim,
             const ClaimsFile& file, const Seeds& seeds, Pairs& pairs) {
  const BySeed a = by_seed(arm), b = by_seed(reference);
  const std::vector<double> lrs = shared_rates(arm, reference, claim, pairs);
  pairs.where = rates_text(claim, arm, reference, lrs);
  pairs.stated_before = true;
  const Seeds candidates =
      seeds.empty() ? mapped(a, [](const auto& each) { return each.first; }) : seeds;
  for (const std::uint64_t seed : candidates) {
    const Runs first = runs_at(a, seed, lrs), second = runs_at(b, seed, lrs);
    if (first.empty() || second.empty()) continue;
    add_pair(claim, file, first, second, pairs);
  }
  if (!pairs.seeds.empty()) return;
  throw NoNumbers(seeds.empty()
                      ? fmt::format("{} and {} have no common seed", pairs.arm, pairs.reference)
                      : fmt::format("none of the seeds {} was trained in both {} and {}",
                                    seeds_text(seeds), pairs.arm, pairs.reference));
}

void pairs_of_arms(const Claim& claim, const ClaimsFile& file, const Seeds& seeds,
                   std::span<const Row* const> runs, Pairs& pairs) {
  pairs = {};
  const ArmRuns first = arm_called(claim.arm, claim.where, runs),
                second = arm_called(claim.reference, claim.where, runs);
  pairs.arm = first.name;
  pairs.reference = second.name;
  const Selected arm = select_runs(first, claim, file, seeds),
                 reference = select_runs(second, claim, file, seeds);
  require_comparable(arm.arm, reference.arm, *claim.metric);
  pairs.parameters = static_cast<double>(reference.arm.runs.front()->status.parameters);
  compare(arm, reference, claim, file, seeds, pairs);
  if (std::ranges::none_of(arm.arm.runs, &Row::finished) &&
      std::ranges::none_of(reference.arm.runs, &Row::finished)) {
    pairs.diverged = first.name + " and " + second.name;
  }
}

std::string name_of_difference(const Pairs& pairs, Scale scale) {
  const bool root = scale == Scale::root;
  return fmt::format("{}{} {} {}{}", root ? "root of " : "", pairs.arm,
                     scale == Scale::ratio ? "over" : "less", root ? "root of " : "",
                     pairs.reference);
}

/// Combines two sets of pairs with the same seeds into pairs of differences.
void set_beside(Pairs& both, const Pairs& second, const Claim& claim) {
  const Scale scale = claim.metric->scale;
  both.arm = name_of_difference(both, scale);
  both.reference = name_of_difference(second, scale);
  const bool one_regime = claim.where == claim.compared_with->where && claim.own_lr.empty();
  if (both.where != second.where && one_regime) {
    throw NoNumbers("{} has values at {}, {} at {}", both.arm, both.where, both.reference,
                    second.where);
  }
  if (both.where != second.where) both.where += fmt::format(" and {}", second.where);
  both.stated_before = both.stated_before && second.stated_before;
  if (both.diverged.empty()) both.diverged = second.diverged;
  both.a = both.gaps();
  both.b = second.gaps();
}

}  // namespace

std::vector<double> Pairs::gaps() const { return less(a, b); }

void find_pairs(const Claim& claim, const ClaimsFile& file, const Seeds& seeds,
                std::span<const Row* const> runs, Pairs& pairs) {
  pairs_of_arms(claim, file, seeds, runs, pairs);
  if (!claim.compared_with) return;
  Claim other = claim;
  other.arm = claim.compared_with->arm;
  other.reference = claim.compared_with->reference;
  other.where = claim.compared_with->where;
  pairs_of_arms(other, file, Seeds(pairs.seeds), runs, pairs);
  const Pairs second = pairs;
  pairs_of_arms(claim, file, second.seeds, runs, pairs);  // the seeds of both
  set_beside(pairs, second, claim);
}

}  // namespace difftape::study
