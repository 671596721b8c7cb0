#include <fmt/format.h>

#include <cmath>

#include "train/study/compare/claims/output.h"
#include "train/study/figures/forest.h"

namespace difftape::study {

namespace {

std::string numbers_of(const ClaimResult& result) {
  return fmt::format("{}, n {}", difference_text(result), result.measured.seeds.size());
}

}  // namespace

std::vector<ForestRow> forest_rows(std::span<const ClaimResult> results) {
  std::vector<ForestRow> rows;
  for (const ClaimResult& result : results) {
    if (result.verdict == Verdict::not_tested) continue;
    const Claim& claim = *result.claim;
    const stats::Interval& difference = result.measured.paired.difference;
    const auto on_axis = [&](double value) {
      return std::isnan(value) ? kNone : claim.on_axis(value);
    };
    ForestRow& row = rows.emplace_back();
    row.label = claim.sentence;
    row.verdict = verdict_words(result);
    row.effect = difference.mean;
    row.low = difference.low();
    row.high = difference.high();
    row.margin = on_axis(claim.margin);
    row.published_low = on_axis(claim.published_low);
    row.published_high = on_axis(claim.published_high);
    row.ratio = claim.quantity->scale == Scale::ratio;
    row.numbers = numbers_of(result);
    if (!row.ratio) row.unit = claim.quantity->unit;
    if (claim.quantity->scale == Scale::root) row.unit = "square roots of counts";
  }
  return rows;
}

}  // namespace difftape::study
