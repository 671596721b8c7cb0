#include "train/study/compare/claims/measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "train/run/config/fields.h"
#include "train/run/config/reader.h"
#include "train/run/config/writer.h"
#include "train/study/compare/study.h"
#include "train/system/number.h"
#include "train/system/suggest.h"

namespace difftape::study {

namespace {

/// Relative tolerance between optim.lr and a multiple of lr_star, which a sweep rounds to six
/// digits.
constexpr double kSameRate = 1e-5;

std::vector<ArmRuns> arms_in(const Regime& where, std::span<const Row* const> runs) {
  std::vector<ArmRuns> arms;
  for (const Row* run : runs) {
    if (!matches(where, [&](const std::string& key) { return run->value(key); })) continue;
    auto arm = std::ranges::find(arms, run->arm, &ArmRuns::name);
    if (arm == arms.end()) arm = arms.insert(arm, {run->arm, {}});
    arm->runs.push_back(run);
  }
  return arms;
}

/// Selects the runs at the multiples of the arm's own rate that the claim names.
Selected at_own_rates(const ArmRuns& arm, const Claim& claim, const ClaimsFile& file) {
  if (!file.own_rates) {
    throw NoNumbers("{} does not exist yet, so no arm has its own learning rate",
                    file.learning_rates);
  }
  Selected selected{{arm.name, {}}};
  for (const Row* run : arm.runs) {
    const OwnRate& rate = file.own_rates->of(arm.name, run->value("model.d_model"));
    selected.own = rate.lr;
    if (std::ranges::find(rate.seeds, run->seed) != rate.seeds.end()) continue;
    for (const double factor : claim.own_lr) {
      if (std::abs(run->lr / (rate.lr * factor) - 1) > kSameRate) continue;
      selected.arm.runs.push_back(run);
      selected.rates.push_back(factor);
    }
  }
  for (const double factor : claim.own_lr) {
    if (std::ranges::find(selected.rates, factor) != selected.rates.end()) continue;
    throw NoNumbers(
        "no run of {} has lr {:g}, {:g} times its own, and a seed that did not choose it", arm.name,
        selected.own * factor, factor);
  }
  return selected;
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

ArmRuns arm_called(const std::string& name, const Regime& where, std::span<const Row* const> runs) {
  const std::vector<ArmRuns> arms = arms_in(where, runs);
  const auto found = std::ranges::find(arms, name, &ArmRuns::name);
  if (found != arms.end()) return *found;
  if (arms.empty()) throw NoNumbers("no run matches 'where'");
  const auto names = mapped(arms, &ArmRuns::name);
  throw NoNumbers("no arm is named {}{}; the arms are {}", name, system::did_you_mean(name, names),
                  fmt::join(names, ", "));
}

void require_one_population(const ArmRuns& arm) {
  for (const Row* run : arm.runs) {
    const Row& first = *arm.runs.front();
    std::vector<std::string> keys = differing_keys(first, *run);
    std::erase_if(keys, [](const auto& key) { return !run::has_flag(key, run::kOfArm); });
    if (keys.empty() && task_difference(first, *run).empty()) continue;
    throw NoNumbers("runs of {} differ in {}: {} and {}; select some of them with 'where'",
                    arm.name,
                    keys.empty() ? "their data" : fmt::format("{}", fmt::join(keys, ", ")),
                    first.dir.string(), run->dir.string());
  }
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

Selected select_runs(const ArmRuns& arm, const Claim& claim, const ClaimsFile& file,
                     const Seeds& seeds) {
  ArmRuns counted{arm.name, {}};
  std::ranges::copy_if(arm.runs, std::back_inserter(counted.runs),
                       [&](const Row* run) { return counts(*run, seeds); });
  if (counted.runs.empty()) {
    const bool ended = std::ranges::any_of(arm.runs, &Row::complete);
    throw NoNumbers(
        ended ? fmt::format("no run of {} has one of the seeds {}", arm.name, seeds_text(seeds))
              : fmt::format("no run of {} has ended", arm.name));
  }
  if (!claim.own_lr.empty()) {
    try {
      return at_own_rates(counted, claim, file);
    } catch (const DataError& error) {
      throw NoNumbers(error.what());
    }
  }
  Selected selected{counted};
  selected.rates = mapped(counted.runs, &Row::lr);
  return selected;
}

}  // namespace difftape::study
