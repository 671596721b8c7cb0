#include "train/study/compare/claims/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "train/stats/descriptive.h"
#include "train/study/compare/curves.h"

namespace difftape::study {

namespace {

using Seeds = std::set<std::uint64_t>;
/// Two conditions that are compared: at one learning rate, or each arm's best.
using ConditionPair = std::pair<const Condition*, const Condition*>;

Seeds seeds_of(const Arm& arm) {
  Seeds seeds;
  for (const RunRecord* run : arm.runs()) {
    if (run->complete()) seeds.insert(run->seed);
  }
  return seeds;
}

Seeds shared_seeds(const Arm& a, const Arm& b) {
  const Seeds of_a = seeds_of(a), of_b = seeds_of(b);
  Seeds shared;
  std::set_intersection(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                        std::inserter(shared, shared.end()));
  return shared;
}

std::vector<ConditionPair> conditions_of(const Arm& arm, const Arm& against, Lrs lrs) {
  const double best = best_lr(lr_points(against));
  if (lrs == Lrs::best) {
    const Condition *a = arm.at(best_lr(lr_points(arm))), *b = against.at(best);
    if (a == nullptr || b == nullptr) return {};
    return {{a, b}};
  }
  std::vector<ConditionPair> conditions;
  for (const Condition& condition : arm.conditions) {
    const Condition* other = against.at(condition.lr);
    // A best learning rate that is not known bounds nothing from below: all are compared.
    if (other == nullptr || (lrs == Lrs::large && condition.lr < best)) continue;
    conditions.emplace_back(&condition, other);
  }
  return conditions;
}

using Holds = std::function<bool(const RunRecord&)>;

/// The pairs of conditions in which every seed has two complete runs of which `holds` is true.
std::vector<ConditionPair> usable(const std::vector<ConditionPair>& conditions, const Seeds& seeds,
                                  const Holds& holds) {
  std::vector<ConditionPair> result;
  for (const ConditionPair& pair : conditions) {
    const bool all = std::all_of(seeds.begin(), seeds.end(), [&](std::uint64_t seed) {
      const RunRecord *a = pair.first->complete(seed), *b = pair.second->complete(seed);
      return a != nullptr && b != nullptr && holds(*a) && holds(*b);
    });
    if (all) result.push_back(pair);
  }
  return result;
}

/// The quantity of one seed: over its runs at all these conditions.
double value_of(const std::vector<const RunRecord*>& runs, const Quantity& quantity) {
  if (quantity.of_seed != nullptr) return quantity.of_seed(runs);
  double sum = 0;
  for (const RunRecord* run : runs) {
    const double value = compared_number(*run, quantity);
    sum += quantity.scale == Scale::ratio ? std::log(value) : value;
  }
  return sum / static_cast<double>(runs.size());
}

std::string describe_lrs(const std::vector<ConditionPair>& used, std::size_t all, Lrs lrs) {
  const auto& [first, second] = used.front();
  if (lrs == Lrs::best && first->lr != second->lr) {
    return fmt::format("at {:g} and {:g}", first->lr, second->lr);
  }
  if (all == 1) return fmt::format("at {:g}", first->lr);
  return fmt::format("at {} of {} learning rates", used.size(), all);
}

std::string describe_diverged(const std::vector<ConditionPair>& conditions, const Arm& arm,
                              const Arm& against) {
  int diverged[2] = {0, 0}, runs[2] = {0, 0};
  for (const ConditionPair& pair : conditions) {
    for (const int side : {0, 1}) {
      for (const RunRecord* run : (side == 0 ? pair.first : pair.second)->runs) {
        runs[side] += run->complete() ? 1 : 0;
        diverged[side] += run->diverged() ? 1 : 0;
      }
    }
  }
  if (diverged[0] + diverged[1] == 0) return "";
  return fmt::format("; diverged: {} {} of {}, {} {} of {}", arm.name, diverged[0], runs[0],
                     against.name, diverged[1], runs[1]);
}

/// Whether the arm has complete runs and all of them diverged.
bool all_diverged(const Arm& arm) {
  const auto runs = arm.runs();
  return !seeds_of(arm).empty() &&
         std::none_of(runs.begin(), runs.end(), [](auto* run) { return run->finished(); });
}

/// Why nothing can be compared although both arms are there; empty if it can.
std::string why_not_compared(const Arm& arm, const Arm& against, const Quantity& quantity,
                             const std::vector<ConditionPair>& conditions, const Seeds& seeds) {
  std::vector<std::string> silent;
  for (const Arm* each : {&arm, &against}) {
    const auto runs = each->runs();
    const bool logged = std::any_of(runs.begin(), runs.end(), [&](const RunRecord* run) {
      return has_metric(run->metrics, quantity.metric);
    });
    const bool optional = quantity.claims.diverged == Diverged::count_unlogged;
    if (!logged && !(optional && all_diverged(*each))) silent.push_back(each->name);
  }
  if (silent.size() == 2) return fmt::format("no run logged {}", quantity.metric);
  if (silent.size() == 1)
    return fmt::format("no run of {} logged {}", silent.front(), quantity.metric);
  for (const Arm* each : {&arm, &against}) {
    if (seeds_of(*each).empty()) return fmt::format("no run of {} has ended", each->name);
    if (quantity.claims.lrs == Lrs::best && std::isnan(best_lr(lr_points(*each))))
      return fmt::format("all runs of {} diverged", each->name);
  }
  if (seeds.empty()) return fmt::format("{} and {} have no seed in common", arm.name, against.name);
  if (conditions.empty()) {
    return fmt::format("{} and {} share no {}learning rate", arm.name, against.name,
                       quantity.claims.lrs == Lrs::large ? "large " : "");
  }
  return "";
}

}  // namespace

double compared_number(const RunRecord& run, const Quantity& quantity) {
  const bool counts = run.finished() || quantity.claims.diverged != Diverged::left_out;
  return counts ? run.number(quantity) : std::numeric_limits<double>::quiet_NaN();
}

Comparison compare_arms(const Arm& arm, const Arm& against, const Quantity& quantity) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  Comparison result{{}, kNaN, kNaN, kNaN, "", "", ""};
  const Seeds seeds = shared_seeds(arm, against);
  const std::vector<ConditionPair> conditions = conditions_of(arm, against, quantity.claims.lrs);
  result.reason = why_not_compared(arm, against, quantity, conditions, seeds);
  if (!result.reason.empty()) return result;
  result.diverged = describe_diverged(conditions, arm, against);
  const std::vector<ConditionPair> used = usable(conditions, seeds, [&](const RunRecord& run) {
    if (quantity.of_run == nullptr) return true;
    const double value = compared_number(run, quantity);
    return std::isfinite(quantity.scale == Scale::ratio ? std::log(value) : value);
  });
  if (quantity.of_seed != nullptr && used.size() < 2) {
    result.reason =
        fmt::format("{}: need two learning rates at which all runs ended", quantity.claims.label);
    return result;
  }
  if (used.empty()) {
    result.reason = fmt::format("at no learning rate has every run a number{}", result.diverged);
    return result;
  }
  result.lrs = describe_lrs(used, conditions.size(), quantity.claims.lrs);
  std::vector<double> a, b;
  for (const std::uint64_t seed : seeds) {
    std::vector<const RunRecord*> of_a, of_b;
    for (const auto& [first, second] : used) {
      of_a.push_back(first->complete(seed));
      of_b.push_back(second->complete(seed));
    }
    const double value_a = value_of(of_a, quantity), value_b = value_of(of_b, quantity);
    if (!std::isfinite(value_a) || !std::isfinite(value_b)) continue;  // diverged at all of them
    a.push_back(value_a);
    b.push_back(value_b);
  }
  if (a.empty()) {
    result.reason = fmt::format("all runs diverged{}", result.diverged);
    return result;
  }
  result.paired = stats::paired_difference(a, b);
  result.arm = quantity.scale == Scale::ratio ? std::exp(stats::mean(a)) : stats::mean(a);
  result.against = quantity.scale == Scale::ratio ? std::exp(stats::mean(b)) : stats::mean(b);
  result.noise_floor = stats::pooled_std(stats::Groups{b});
  return result;
}

}  // namespace difftape::study
