#include "train/study/compare/claims/measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "train/stats/size_trend.h"
#include "train/study/compare/claims/arms.h"
#include "train/study/compare/claims/control.h"

namespace difftape::study {

namespace {

constexpr const char* kSize = "model.d_model";

Index missing_seeds(const Seeds& planned, const Pairs& found) {
  return std::max<Index>(0, std::ssize(planned) - found.count());
}

/// Weights times the differences in each group, added up; empty if a pair has none.
std::vector<double> sum_of_groups(const std::vector<std::vector<double>>& groups,
                                  const std::vector<double>& weights) {
  std::vector<double> sum(groups.empty() ? 0 : groups.front().size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].size() != sum.size()) return {};
    for (std::size_t g = 0; g < sum.size(); ++g) sum[g] += weights[i] * groups[i][g];
  }
  return sum;
}

/// Adds the error of the held-out text, where `groups` of it are known. Groups in which nothing was
/// scored are NaN.
void add_text_error(std::vector<double> groups, Measured& measured) {
  std::erase_if(groups, [](double each) { return std::isnan(each); });
  if (groups.size() < 2 || !(measured.paired.error > 0)) return;
  measured.paired = stats::with_error(measured.paired, stats::mean_error(groups));
  measured.group_count = std::ssize(groups);
}

/// Why the pairs of a claim cannot be tested although there are some; empty if they can.
std::string no_contrast(const Claim& claim, const Pairs& pairs) {
  if (pairs.all_diverged) {
    return fmt::format("all runs of {}{} diverged", pairs.arm,
                       claim.has_value() ? "" : " and " + pairs.reference);
  }
  if (pairs.a != pairs.b) return "";
  return fmt::format("{}: {}", claim.metric->label,
                     claim.compared_with ? "both differences of every seed are the same"
                                         : "both runs of every pair have the same number");
}

Measured of_one_size(const Claim& claim, const ClaimsFile& file,
                     std::span<const RunRecord* const> runs) {
  Measured measured;
  static_cast<Pairs&>(measured) = find_pairs(claim, file, claim.seeds, runs);
  if (!measured.reason.empty()) return measured;
  measured.missing = missing_seeds(claim.seeds, measured);
  measured.failed_control = no_contrast(claim, measured);
  measured.paired = stats::paired_difference(measured.a, measured.b);
  const std::vector<double> weights(measured.a.size(), 1 / static_cast<double>(measured.a.size()));
  add_text_error(sum_of_groups(measured.groups, weights), measured);
  // A difference of roots is no root of anything.
  const Scale scale = claim.metric->scale;
  const Scale read = claim.compared_with && scale == Scale::root ? Scale::difference : scale;
  measured.arm_mean = mean_from_scale(measured.a, read);
  measured.reference_mean = mean_from_scale(measured.b, read);
  return measured;
}

/// The sizes at which complete runs of an arm count.
std::set<Index> sizes_of(const std::string& arm, const Claim& claim, const ClaimsFile& file,
                         std::span<const RunRecord* const> runs, std::string& reason) {
  std::set<Index> sizes;
  for (const ArmRuns& each : arms_called(arm, file, claim.where, runs, reason)) {
    for (const RunRecord* run : each.runs) {
      const bool named = claim.seeds.empty() || std::ranges::count(claim.seeds, run->seed) > 0;
      const std::string size = run->value(kSize);
      if (run->complete() && named && !size.empty()) sizes.insert(std::stoll(size));
    }
  }
  return sizes;
}

/// Seeds by size: those that the claim names, or those of the sizes at which both arms ran.
std::map<Index, Seeds> sizes_that_count(const Claim& claim, const ClaimsFile& file,
                                        std::span<const RunRecord* const> runs,
                                        std::string& reason) {
  if (!claim.seeds_of_size.empty()) return claim.seeds_of_size;
  const std::set<Index> of_arm = sizes_of(claim.arm, claim, file, runs, reason);
  if (!reason.empty()) return {};
  const std::set<Index> of_reference = sizes_of(claim.reference, claim, file, runs, reason);
  if (!reason.empty()) return {};
  if (of_arm != of_reference) {
    reason = fmt::format("{} has runs at {} {}, {} at {}; name the sizes that count in 'where'",
                         claim.arm, kSize, fmt::join(of_arm, ", "), claim.reference,
                         fmt::join(of_reference, ", "));
  } else if (of_arm.size() < 2) {
    reason = fmt::format("{} and {} have runs at {} of {}, but need two or more", claim.arm,
                         claim.reference, of_arm.empty() ? "no value" : "one value", kSize);
  }
  std::map<Index, Seeds> sizes;
  for (const Index size : of_arm) sizes[size] = claim.seeds;
  return sizes;
}

/// Why the pairs of one of several sizes do not count; empty if they do.
std::string why_not_of_size(const Pairs& pairs) {
  if (!pairs.reason.empty()) return pairs.reason;
  if (pairs.count() < kSeedsForVerdict)
    return fmt::format("{} seeds; need {}", pairs.count(), kSeedsForVerdict);
  return "";
}

/// Takes what the pairs of one size add to what is known of all sizes.
void append(const Pairs& pairs, Index d_model, Measured& measured) {
  const std::vector<double> gaps = pairs.gaps();
  measured.sizes.push_back({d_model, pairs.parameters, pairs.count(), stats::mean_interval(gaps)});
  measured.seeds.insert(measured.seeds.end(), pairs.seeds.begin(), pairs.seeds.end());
  measured.groups.insert(measured.groups.end(), pairs.groups.begin(), pairs.groups.end());
  measured.stated_before = measured.stated_before && pairs.stated_before;
}

Measured over_sizes(const Claim& claim, const ClaimsFile& file,
                    std::span<const RunRecord* const> runs) {
  Measured measured;
  measured.stated_before = true;
  const auto sizes = sizes_that_count(claim, file, runs, measured.reason);
  std::vector<stats::SizeGaps> gaps;
  std::vector<std::string> no_contrasts;
  for (const auto& [size, seeds] : sizes) {
    if (!measured.reason.empty()) break;
    std::vector<const RunRecord*> of_size;
    std::ranges::copy_if(runs, std::back_inserter(of_size), [&, size = size](const auto* run) {
      return run->value(kSize) == fmt::to_string(size);
    });
    const Pairs pairs = find_pairs(claim, file, seeds, of_size);
    measured.arm = pairs.arm;
    measured.reference = pairs.reference;
    if (const std::string why = why_not_of_size(pairs); !why.empty()) {
      measured.reason = fmt::format("{} {}: {}", kSize, size, why);
      break;
    }
    append(pairs, size, measured);
    measured.missing += missing_seeds(seeds, pairs);
    gaps.push_back({pairs.parameters, pairs.seeds, pairs.gaps()});
    if (std::string none = no_contrast(claim, pairs); !none.empty())
      no_contrasts.push_back(std::move(none));
  }
  const auto same_size = [&](const stats::SizeGaps& each) { return each.size == gaps[0].size; };
  if (measured.reason.empty() && std::ranges::all_of(gaps, same_size))
    measured.reason = fmt::format("all sizes have {:g} parameters", gaps[0].size);
  if (!measured.reason.empty()) return measured;
  if (no_contrasts.size() == gaps.size()) measured.failed_control = no_contrasts.front();
  const auto trend = claim.over == Over::slope ? stats::Trend::slope : stats::Trend::mean;
  measured.paired = stats::size_trend(gaps, trend);
  if (std::isnan(measured.paired.error) && measured.failed_control.empty())
    measured.failed_control = "all differences of each size are the same: no spread is known";
  std::vector<double> weights;
  const std::vector<double> of_sizes = stats::gap_weights(gaps, trend);
  for (std::size_t i = 0; i < gaps.size(); ++i)
    weights.insert(weights.end(), gaps[i].gaps.size(), of_sizes[i]);
  add_text_error(sum_of_groups(measured.groups, weights), measured);
  measured.groups.clear();
  measured.where = fmt::format("{} sizes{}", gaps.size(), claim.own_lr.empty() ? "" : ", own lr");
  return measured;
}

}  // namespace

Measured measure(const Claim& claim, const ClaimsFile& file,
                 std::span<const RunRecord* const> runs) {
  Measured measured =
      claim.over == Over::no_sizes ? of_one_size(claim, file, runs) : over_sizes(claim, file, runs);
  for (const Control& control : claim.controls) {
    if (!measured.reason.empty() || !measured.failed_control.empty()) break;
    measured.failed_control = failed_control(control, file, claim, runs, measured.reason);
  }
  if (!measured.reason.empty()) measured.seeds.clear();
  return measured;
}

}  // namespace difftape::study
