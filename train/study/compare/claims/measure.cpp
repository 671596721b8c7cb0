#include "train/study/compare/claims/measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "train/stats/descriptive.h"
#include "train/stats/interval.h"
#include "train/system/number.h"

namespace difftape::study {

namespace {

constexpr const char* kSize = "model.d_model";

Index missing_seeds(const Seeds& planned, const Pairs& found) {
  return std::max<Index>(0, std::ssize(planned) - found.count());
}

std::string no_contrast(const Claim& claim, const Pairs& pairs) {
  if (!pairs.diverged.empty()) return fmt::format("all runs of {} diverged", pairs.diverged);
  if (pairs.a != pairs.b) return "";
  return fmt::format("{}: {}", claim.metric->label,
                     claim.compared_with ? "both differences of every seed are equal"
                                         : "both runs of every pair have the same value");
}

void measure_one_size(const Claim& claim, const ClaimsFile& file, std::span<const Row* const> runs,
                      Measured& measured) {
  find_pairs(claim, file, claim.seeds, runs, measured);
  measured.missing = missing_seeds(claim.seeds, measured);
  measured.failed_control = no_contrast(claim, measured);
  measured.paired = stats::paired_difference(measured.a, measured.b);
  // A difference of roots is not itself a root.
  const Scale scale = claim.metric->scale;
  const Scale read = claim.compared_with && scale == Scale::root ? Scale::difference : scale;
  measured.arm_mean = mean_from_scale(measured.a, read);
  measured.reference_mean = mean_from_scale(measured.b, read);
}

Index size_of(const Row& run) { return system::read_number<Index>(run.value(kSize)).value_or(0); }

std::set<Index> sizes_of(const std::string& arm, const Claim& claim,
                         std::span<const Row* const> runs) {
  std::set<Index> sizes;
  for (const Row* run : arm_called(arm, claim.where, runs).runs)
    if (counts(*run, claim.seeds)) sizes.insert(size_of(*run));
  return sizes;
}

/// Returns seeds by size: as the claim names them, or for the sizes at which both arms ran.
std::map<Index, Seeds> sizes_that_count(const Claim& claim, std::span<const Row* const> runs) {
  if (!claim.seeds_of_size.empty()) return claim.seeds_of_size;
  const std::set<Index> of_arm = sizes_of(claim.arm, claim, runs),
                        of_reference = sizes_of(claim.reference, claim, runs);
  if (of_arm != of_reference) {
    throw NoNumbers("{} has runs at {} {}, {} at {}; select sizes with 'where'", claim.arm, kSize,
                    fmt::join(of_arm, ", "), claim.reference, fmt::join(of_reference, ", "));
  }
  if (of_arm.size() < 2) {
    throw NoNumbers("{} and {} have runs at {} of {}, but need two or more", claim.arm,
                    claim.reference, of_arm.empty() ? "no value" : "one value", kSize);
  }
  std::map<Index, Seeds> sizes;
  for (const Index size : of_arm) sizes[size] = claim.seeds;
  return sizes;
}

/// Returns the pairs at one of several sizes. Throws NoNumbers if there are too few.
Pairs pairs_at(Index size, const Seeds& seeds, const Claim& claim, const ClaimsFile& file,
               std::span<const Row* const> runs, Measured& measured) {
  std::vector<const Row*> of_size;
  std::ranges::copy_if(runs, std::back_inserter(of_size),
                       [&](const auto* run) { return size_of(*run) == size; });
  Pairs pairs;
  std::string why;
  try {
    find_pairs(claim, file, seeds, of_size, pairs);
    if (pairs.count() < kSeedsForVerdict)
      why = fmt::format("{} seeds; need {}", pairs.count(), kSeedsForVerdict);
  } catch (const NoNumbers& none) {
    why = none.what();
  }
  measured.arm = pairs.arm;
  measured.reference = pairs.reference;
  if (!why.empty()) throw NoNumbers("{} {}: {}", kSize, size, why);
  return pairs;
}

void measure_over_sizes(const Claim& claim, const ClaimsFile& file,
                        std::span<const Row* const> runs, Measured& measured) {
  measured.stated_before = true;
  std::vector<stats::SizeGaps> gaps;
  std::vector<std::string> no_contrasts;
  for (const auto& [size, seeds] : sizes_that_count(claim, runs)) {
    const Pairs pairs = pairs_at(size, seeds, claim, file, runs, measured);
    gaps.push_back({pairs.parameters, pairs.seeds, pairs.gaps()});
    measured.sizes.push_back(
        {size, pairs.parameters, pairs.count(), stats::mean_interval(gaps.back().gaps)});
    measured.seeds.insert(measured.seeds.end(), pairs.seeds.begin(), pairs.seeds.end());
    measured.stated_before = measured.stated_before && pairs.stated_before;
    measured.missing += missing_seeds(seeds, pairs);
    if (std::string none = no_contrast(claim, pairs); !none.empty())
      no_contrasts.push_back(std::move(none));
  }
  if (std::ranges::all_of(gaps, [&](const auto& each) { return each.size == gaps[0].size; }))
    throw NoNumbers("all sizes have {:g} parameters", gaps[0].size);
  if (no_contrasts.size() == gaps.size()) measured.failed_control = no_contrasts.front();
  const auto trend = claim.over == Over::slope ? stats::Trend::slope : stats::Trend::mean;
  measured.paired = stats::size_trend(gaps, trend);
  if (std::isnan(measured.paired.error) && measured.failed_control.empty())
    measured.failed_control = "all differences at each size are equal, so the spread is unknown";
  measured.where = fmt::format("{} sizes{}", gaps.size(), claim.own_lr.empty() ? "" : ", own lr");
}

std::string failed_control(const Control& control, const Claim& claim,
                           std::span<const Row* const> runs) {
  const ArmRuns arm = arm_called(control.arm, claim.where, runs);
  const Quantity& metric = *control.metric;
  std::vector<double> values;
  for (const Row* run : arm.runs) {
    const auto of_size = claim.seeds_of_size.find(size_of(*run));
    if (!claim.seeds_of_size.empty() && of_size == claim.seeds_of_size.end()) continue;
    const Seeds& seeds = claim.seeds_of_size.empty() ? claim.seeds : of_size->second;
    if (counts(*run, seeds)) values.push_back(run->number(metric));
  }
  const double mean = stats::mean(values);
  if (std::isnan(mean))
    throw NoNumbers("control: a run of {} has no value of {}", arm.name, metric.label);
  if (mean >= control.from && mean <= control.to) return "";
  return fmt::format("{}: {} has {:.3g} on average; need {}", metric.label, arm.name, mean,
                     std::isinf(control.to) ? fmt::format("{:g} or more", control.from)
                     : std::isinf(control.from)
                         ? fmt::format("{:g} or less", control.to)
                         : fmt::format("{:g} to {:g}", control.from, control.to));
}

}  // namespace

Measured measure(const Claim& claim, const ClaimsFile& file, std::span<const Row* const> runs) {
  Measured measured;
  try {
    const bool one = claim.over == Over::no_sizes;
    (one ? measure_one_size : measure_over_sizes)(claim, file, runs, measured);
    for (const Control& control : claim.controls) {
      if (!measured.failed_control.empty()) break;
      measured.failed_control = failed_control(control, claim, runs);
    }
  } catch (const NoNumbers& none) {
    Measured untested;
    untested.arm = measured.arm;
    untested.reference = measured.reference;
    untested.reason = none.what();
    return untested;
  }
  return measured;
}

}  // namespace difftape::study
