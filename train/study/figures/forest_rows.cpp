// What of verdicts a forest plot shows: their rows and their marks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

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
    if (!result.verdict.is_tested()) continue;
    const Claim& claim = *result.claim;
    const auto on_axis = [&](double value) {
      return std::isnan(value) ? kNone : claim.on_axis(value);
    };
    ForestRow& row = rows.emplace_back();
    row.label = claim.statement;
    row.verdict = result.verdict.words();
    row.effect = result.measured.paired.difference.mean;
    row.low = result.measured.paired.difference.low();
    row.high = result.measured.paired.difference.high();
    row.margin = on_axis(claim.margin);
    row.published_low = on_axis(claim.published_low);
    row.published_high = on_axis(claim.published_high);
    row.ratio = claim.metric->scale == Scale::ratio;
    row.numbers = numbers_of(result);
    if (!row.ratio) row.unit = claim.metric->unit;
    if (claim.metric->scale == Scale::root) row.unit = "square roots of counts";
    if (!row.ratio && claim.over == Over::slope) row.unit += " per decade of parameters";
  }
  return rows;
}

}  // namespace difftape::study

namespace difftape::study::svg {

namespace {

constexpr VerdictLook kLooks[] = {{"supported", Marker::circle, 1, true},
                                  {"contradicted", Marker::diamond, 2, true},
                                  {"equivalent", Marker::square, 3, true},
                                  {"exploratory: supported", Marker::circle, 1, false},
                                  {"exploratory: contradicted", Marker::diamond, 2, false},
                                  {"exploratory: equivalent", Marker::square, 3, false},
                                  {"inconclusive", Marker::triangle, -1, false},
                                  {"not testable", Marker::dash, -1, false}};
constexpr double kRadius = 5.2, kIcon = 14;

}  // namespace

std::span<const VerdictLook> verdict_looks() { return kLooks; }

const VerdictLook& look_of(std::string_view verdict) {
  const auto found = std::ranges::find_if(
      kLooks, [&](const VerdictLook& look) { return verdict.starts_with(look.verdict); });
  return found == std::end(kLooks) ? *std::rbegin(kLooks) : *found;
}

std::string fill(const VerdictLook& look) {
  return look.arm < 0 ? kMuted : fill(static_cast<std::size_t>(look.arm));
}

std::string stroke(const VerdictLook& look) {
  return look.arm < 0 ? "class=\"reference\" stroke=\"#5b646d\""
                      : stroke(static_cast<std::size_t>(look.arm));
}

void draw_verdict(Drawing& drawing, const VerdictLook& look, Point at, const std::string& title) {
  const std::string outline = stroke(look) + " stroke-width=\"1.8\" fill=\"none\"";
  if (look.shape == Marker::dash) {
    drawing.marker(look.shape, at, 4, outline, title);
  } else if (look.filled) {
    drawing.marker(look.shape, at, kRadius, fill(look), title);
  } else {
    drawing.marker(look.shape, at, kRadius - 0.8, "class=\"hollow\" fill=\"#ffffff\"", title);
    drawing.marker(look.shape, at, kRadius - 0.8, outline);
  }
}

std::string verdict_icon(const VerdictLook& look) {
  Drawing drawing(kIcon, kIcon, "");
  draw_verdict(drawing, look, {kIcon / 2, kIcon / 2});
  return drawing.icon();
}

}  // namespace difftape::study::svg
