#include "train/study/compare/claims/cells.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "core/error.h"
#include "train/run/config/fields.h"
#include "train/stats/lr_optimum.h"
#include "train/study/compare/study.h"
#include "train/system/number.h"
#include "train/system/suggest.h"

namespace difftape::study {

namespace {

/// Relative tolerance between optim.lr and a multiple of lr_star, which a sweep rounds to six
/// digits.
constexpr double kSameRate = 1e-5;

void require_one_population(const ClaimCell& cell) {
  for (const Row* run : cell.runs) {
    const Row& first = *cell.runs.front();
    std::vector<std::string> keys = differing_keys(first, *run);
    std::erase_if(keys, [](const auto& key) { return !run::has_flag(key, run::kOfArm); });
    if (keys.empty() && task_difference(first, *run).empty()) continue;
    throw NoNumbers("runs of {} differ in {}: {} and {}; select some of them with 'where'",
                    cell.arm,
                    keys.empty() ? "their data" : fmt::format("{}", fmt::join(keys, ", ")),
                    first.dir.string(), run->dir.string());
  }
}

void add(ClaimCell& cell, const Row& run, double rate) {
  cell.runs.push_back(&run);
  const auto [place, added] = cell.by_seed[run.seed].emplace(rate, &run);
  if (added) return;
  throw NoNumbers("{} has two runs of seed {} at lr {:g}: {} and {}", cell.arm, run.seed, run.lr,
                  place->second->dir.string(), run.dir.string());
}

/// Adds the runs at the multiples of the arm's own rate that the claim names.
void add_at_own_rates(ClaimCell& cell, const Runs& runs, const Claim& claim,
                      const ClaimsFile& file) {
  if (!file.own_rates)
    throw NoNumbers("{} does not exist yet, so no arm has its own learning rate",
                    file.learning_rates);
  for (const Row* run : runs) {
    const OwnRate& rate = file.own_rates->of(cell.arm, run->value("model.d_model"));
    cell.own = rate.lr;
    if (std::ranges::find(rate.seeds, run->seed) != rate.seeds.end()) continue;
    for (const double factor : claim.own_lr)
      if (std::abs(run->lr / (rate.lr * factor) - 1) <= kSameRate) add(cell, *run, factor);
  }
  const std::vector<double> found = cell.rates();
  for (const double factor : claim.own_lr) {
    if (std::ranges::find(found, factor) != found.end()) continue;
    throw NoNumbers(
        "no run of {} has lr {:g}, {:g} times its own, and a seed that did not choose it", cell.arm,
        cell.own * factor, factor);
  }
}

}  // namespace

bool matches(const Regime& where,
             const std::function<std::string(const std::string& key)>& value_of) {
  return std::ranges::all_of(where, [&](const auto& entry) {
    const std::string found = value_of(entry.first);
    const auto number = system::read_number<double>(found);
    return std::ranges::any_of(entry.second, [&](const std::string& each) {
      const auto meant = system::read_number<double>(each);
      return meant && number ? *meant == *number : each == found;
    });
  });
}

Runs runs_of(const std::string& arm, const Regime& where, std::span<const Row* const> runs) {
  Runs found;
  std::vector<std::string> names;
  for (const Row* run : runs) {
    if (!matches(where, [&](const std::string& key) { return run->value(key); })) continue;
    add_once(names, run->arm);
    if (run->arm == arm) found.push_back(run);
  }
  if (!found.empty()) return found;
  if (names.empty()) throw NoNumbers("no run matches 'where'");
  throw NoNumbers("no arm is named {}{}; the arms are {}", arm, system::did_you_mean(arm, names),
                  fmt::join(names, ", "));
}

bool counts(const Row& run, const Seeds& seeds) {
  return run.complete() && (seeds.empty() || std::ranges::count(seeds, run.seed) > 0);
}

std::string seeds_text(const Seeds& seeds) {
  const auto gap = [](std::uint64_t a, std::uint64_t b) { return b != a + 1; };
  return seeds.size() > 2 && std::ranges::adjacent_find(seeds, gap) == seeds.end()
             ? fmt::format("{}..{}", seeds.front(), seeds.back())
             : fmt::format("{}", fmt::join(seeds, ", "));
}

std::vector<double> ClaimCell::rates() const {
  std::set<double> rates;
  for (const auto& [seed, runs_at] : by_seed)
    for (const auto& [rate, run] : runs_at) rates.insert(rate);
  return {rates.begin(), rates.end()};
}

Runs ClaimCell::at(std::uint64_t seed, const std::vector<double>& wanted) const {
  Runs found;
  const auto of_seed = by_seed.find(seed);
  if (of_seed == by_seed.end()) return found;
  for (const double rate : wanted) {
    const auto run = of_seed->second.find(rate);
    if (run == of_seed->second.end()) return {};
    found.push_back(run->second);
  }
  return found;
}

ClaimCell make_cell(const Term& term, const Claim& claim, const ClaimsFile& file,
                    const Seeds& seeds, std::span<const Row* const> runs) {
  const Runs all = runs_of(term.arm, term.where, runs);
  Runs counted;
  std::ranges::copy_if(all, std::back_inserter(counted),
                       [&](const Row* run) { return counts(*run, seeds); });
  if (counted.empty()) {
    const bool ended = std::ranges::any_of(all, &Row::complete);
    throw NoNumbers(
        ended ? fmt::format("no run of {} has one of the seeds {}", term.arm, seeds_text(seeds))
              : fmt::format("no run of {} has ended", term.arm));
  }
  ClaimCell cell{term.arm, {}};
  try {
    if (!claim.own_lr.empty()) add_at_own_rates(cell, counted, claim, file);
  } catch (const DataError& error) {
    throw NoNumbers(error.what());
  }
  if (claim.own_lr.empty())
    for (const Row* run : counted) add(cell, *run, run->lr);
  require_one_population(cell);
  return cell;
}

void require_comparable(const ClaimCell& a, const ClaimCell& b, const Quantity& metric) {
  for (const ClaimCell* each : {&a, &b}) {
    const bool logged =
        std::ranges::any_of(each->runs, [&](const Row* run) { return run->logged(metric); });
    const bool failed = std::ranges::all_of(each->runs, &Row::diverged);
    if (!logged && !(failed && metric.of_diverged))
      throw NoNumbers("no run of {} logged {}", each->arm, metric.metric);
  }
  const std::string difference = task_difference(*a.runs.front(), *b.runs.front());
  if (!difference.empty()) throw NoNumbers(difference);
}

double value_of(const Runs& runs, const Quantity& metric) {
  std::vector<double> values;
  for (const Row* run : runs) {
    const double value = on_scale(run->number(metric.of_one_run()), metric.scale);
    values.push_back(value);
    if (std::isfinite(value) && (run->finished() || metric.of_diverged)) continue;
    throw NoNumbers(
        "{} with seed {} at lr {:g} {} and has no value of {}{}", run->arm, run->seed, run->lr,
        describe_state(run->status), metric.label,
        runs.size() > 1 ? "; select learning rates at which no run diverges with 'where'" : "");
  }
  if (metric.over_rates == OverRates::penalty) return values.back() - values.front();
  if (metric.over_rates == OverRates::mean)
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  if (std::ranges::none_of(runs, &Row::finished))
    throw NoNumbers("seed {} of {} has no value of {}", runs.front()->seed, runs.front()->arm,
                    metric.label);
  stats::Groups losses;
  for (const double value : values) losses.push_back({value});
  return stats::lr_sensitivity(losses);
}

}  // namespace difftape::study
