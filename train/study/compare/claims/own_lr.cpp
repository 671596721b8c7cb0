#include "train/study/compare/claims/own_lr.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "train/study/compare/claims/pairs.h"

namespace difftape::study {

namespace {

bool is_multiple(double lr, double own, double factor) {
  return std::abs(lr / (own * factor) - 1) <= kSameRate;
}

std::string multiples(const Claim& claim) {
  std::vector<std::string> texts;
  for (const double factor : claim.own_lr)
    texts.push_back(factor == 1 ? "own" : fmt::format("{:g} x own", factor));
  return fmt::format("{}", fmt::join(texts, " and "));
}

/// The runs at the multiples of the arm's own rate that the claim names.
Selected at_own_rates(const ArmRuns& arm, const Claim& claim, const ClaimsFile& file,
                      std::string& reason) {
  Selected selected{{arm.name, {}}, {}};
  if (!file.own_rates) {
    reason = fmt::format("{} is not there yet: no arm has a learning rate of its own",
                         file.learning_rates);
    return selected;
  }
  for (const RunRecord* run : arm.runs) {
    const OwnRate& rate = file.own_rates->of(arm.name, run->value("model.d_model"));
    selected.own = rate.lr;
    if (std::ranges::find(rate.seeds, run->seed) != rate.seeds.end()) continue;
    for (const double factor : claim.own_lr) {
      if (!is_multiple(run->lr, rate.lr, factor)) continue;
      selected.arm.runs.push_back(run);
      selected.rates.push_back(factor);
    }
  }
  for (const double factor : claim.own_lr) {
    if (!reason.empty() || std::ranges::find(selected.rates, factor) != selected.rates.end())
      continue;
    reason = fmt::format(
        "no run of {} at lr {:g}, {:g} times its own, with a seed that did not "
        "choose it",
        arm.name, selected.own * factor, factor);
  }
  return selected;
}

}  // namespace

Selected select_runs(const ArmRuns& arm, const Claim& claim, const ClaimsFile& file,
                     const Seeds& seeds, std::string& reason) {
  ArmRuns counted{arm.name, {}};
  for (const RunRecord* run : arm.runs) {
    const bool named = seeds.empty() || std::ranges::find(seeds, run->seed) != seeds.end();
    if (named && run->complete()) counted.runs.push_back(run);
  }
  if (counted.runs.empty()) {
    const bool ended = std::ranges::any_of(arm.runs, &RunRecord::complete);
    reason = ended ? fmt::format("no run of {} has one of the seeds {}", arm.name,
                                 fmt::join(seeds, ", "))
                   : fmt::format("no run of {} has ended", arm.name);
    return {counted, {}};
  }
  if (!claim.own_lr.empty()) {
    try {
      return at_own_rates(counted, claim, file, reason);
    } catch (const DataError& error) {
      reason = error.what();
      return {counted, {}};
    }
  }
  Selected selected{counted, {}};
  for (const RunRecord* run : counted.runs) selected.rates.push_back(run->lr);
  return selected;
}

std::string rates_text(const Claim& claim, const Selected& arm, const Selected& reference,
                       const std::vector<double>& rates) {
  if (claim.own_lr.empty()) return fmt::format("lr {:g}", fmt::join(rates, ", "));
  const std::string other =
      claim.has_value() ? "" : fmt::format(", {} {:g}", reference.arm.name, reference.own);
  return fmt::format("{} lr ({} {:g}{})", multiples(claim), arm.arm.name, arm.own, other);
}

}  // namespace difftape::study
