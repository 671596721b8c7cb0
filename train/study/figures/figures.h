#pragma once
// The figures: a forest plot of all claims, and final loss against learning rate. Verdicts have a
// color and a shape, for readers who cannot distinguish colors; the table of claims uses the same
// marks.

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "train/study/compare/claims/verdicts.h"
#include "train/study/compare/lr_curves.h"
#include "train/study/figures/drawing.h"

namespace difftape::study {

/// One claim. NaN means a missing number.
struct ForestRow {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  std::string label = {};  ///< statement of the claim
  Verdict verdict = {};
  double effect = kNone, low = kNone, high = kNone;  ///< with its 95 % interval, or a bound
  double margin = kNone;                             ///< equivalence means within +-margin
  bool ratio = false;        ///< all of these are logarithms of ratios; the axis shows factors
  std::string numbers = {};  ///< as text: "-0.035 (-0.041 to -0.029), n 8"
  std::string unit = {};     ///< unit of a difference; rows of one unit share an axis
};

/// Draws the rows in their order, 900 units wide. Rows of one unit share an axis; ratios share a
/// logarithmic one.
std::string forest_svg(std::span<const ForestRow> rows, SvgKind kind);

/// Returns one row per tested claim.
std::vector<ForestRow> forest_rows(const JudgedClaims& claims);

/// Draws one panel per size and task, by ascending number of parameters: final validation loss
/// against peak learning rate (logarithmic). Each arm has a line through the means of its ladder, a
/// band from the lowest to the highest seed, and a star at lr* with its interval. Small hollow
/// marks are runs outside the ladder.
std::string lr_curve_svg(std::span<const LrCurve> curves, SvgKind kind);

}  // namespace difftape::study

namespace difftape::study::svg {

struct VerdictLook {
  Finding finding;
  bool exploratory;
  Marker shape;
  int arm;      ///< the arm whose color it has (drawing.h); -1: gray
  bool filled;  ///< false: the outline only
};

/// Looks of the verdicts, each with its own shape and fill: supported, contradicted, equivalent,
/// the same as outlines for exploratory verdicts, inconclusive, and not testable.
std::span<const VerdictLook> verdict_looks();
/// Returns the look of a verdict; "not testable" if it has none.
const VerdictLook& look_of(const Verdict& verdict);

std::string fill(const VerdictLook& look);
std::string stroke(const VerdictLook& look);
void draw_verdict(Drawing& drawing, const VerdictLook& look, Point at,
                  const std::string& title = "");
/// Returns the mark alone, for the text of a page.
std::string verdict_icon(const VerdictLook& look);

}  // namespace difftape::study::svg
