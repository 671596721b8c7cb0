#pragma once
// A forest plot: what each claim comes to, as an effect with its interval beside what was published
// and the margin within which two arms count as equal.

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "train/study/figures/drawing.h"

namespace difftape::study {

struct ClaimResult;

/// One claim. NaN stands for a number that there is not.
struct ForestRow {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  std::string label = {};  ///< the claim in words
  /// "supported", "contradicted", "equivalent", each perhaps after "hint: ", "undecided" or
  /// "not testable", then a reason
  std::string verdict = {};
  double effect = kNone, low = kNone, high = kNone;      ///< with its 95 % interval
  double margin = kNone;                                 ///< equal is within +-margin
  double published_low = kNone, published_high = kNone;  ///< equal ends: one value
  bool ratio = false;        ///< all of these are logarithms of ratios: the axis is in factors
  std::string numbers = {};  ///< the same in words: "-0.035 (-0.041 to -0.029), n 8"
  std::string unit = {};     ///< of a difference; rows of one unit share an axis
};

/// Rows in their order below each other, 900 units wide, those of one unit on one axis; ratios
/// share a logarithmic one. A verdict has a colour, a shape and its word (verdict_marks.h); one
/// with other words than the above is drawn as not testable. An interval that reaches far beyond
/// the effects is cut, with an arrow. No rows are an empty text.
std::string forest_svg(std::span<const ForestRow> rows, SvgKind kind);

/// The claims that are tested, a row each.
std::vector<ForestRow> forest_rows(std::span<const ClaimResult> results);

}  // namespace difftape::study
