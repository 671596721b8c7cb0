#pragma once
// The figures: a forest plot of what each claim comes to, and final loss against learning rate. And
// how a verdict looks, there and in the table of claims: a color and a shape, since a color alone
// says nothing to some readers.

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "train/study/compare/claims/verdicts.h"
#include "train/study/compare/lr_curves.h"
#include "train/study/figures/drawing.h"

namespace difftape::study {

/// One claim. NaN stands for a number that there is not.
struct ForestRow {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  std::string label = {};  ///< the claim in words
  Verdict verdict = {};
  double effect = kNone, low = kNone, high = kNone;      ///< with its 95 % interval, or a bound
  double margin = kNone;                                 ///< equal is within +-margin
  double published_low = kNone, published_high = kNone;  ///< equal ends: one value
  bool ratio = false;        ///< all of these are logarithms of ratios: the axis is in factors
  std::string numbers = {};  ///< the same in words: "-0.035 (-0.041 to -0.029), n 8"
  std::string unit = {};     ///< of a difference; rows of one unit share an axis
};

/// Rows in their order below each other, 900 units wide, those of one unit on one axis; ratios
/// share a logarithmic one.
std::string forest_svg(std::span<const ForestRow> rows, SvgKind kind);

/// The claims that are tested, one row each.
std::vector<ForestRow> forest_rows(std::span<const ClaimResult> results);

/// A panel for each size and task, by ascending number of parameters: final validation loss against
/// peak learning rate (logarithmic), one line an arm through the means of its ladder, a band from
/// the lowest to the highest seed, a star at lr* with its interval; small hollow marks are runs
/// beside the ladder.
std::string lr_curve_svg(std::span<const LrCurve> curves, SvgKind kind);

}  // namespace difftape::study

namespace difftape::study::svg {

struct VerdictLook {
  Finding finding;
  bool exploratory;
  Marker shape;
  int arm;      ///< whose color it has (drawing.h); -1: grey
  bool filled;  ///< or its outline
};

/// No two have the same shape and filling: supported, contradicted, equivalent, each also as an
/// exploratory verdict, which is the outline of its shape; inconclusive, not testable.
std::span<const VerdictLook> verdict_looks();
/// That of not testable for what has none of its own.
const VerdictLook& look_of(const Verdict& verdict);

std::string fill(const VerdictLook& look);
std::string stroke(const VerdictLook& look);
void draw_verdict(Drawing& drawing, const VerdictLook& look, Point at,
                  const std::string& title = "");
/// The mark alone, to stand before the words in a page.
std::string verdict_icon(const VerdictLook& look);

}  // namespace difftape::study::svg
