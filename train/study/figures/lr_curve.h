#pragma once
// Final loss against learning rate, a panel a size; and the gap to the baseline against size.

#include <span>
#include <string>

#include "train/study/compare/lr_curves.h"
#include "train/study/figures/drawing.h"

namespace difftape::study {

/// A panel for each size and task, by ascending number of parameters: final validation loss against
/// peak learning rate (logarithmic), one line an arm through the means of its ladder, a band from
/// the lowest to the highest seed, a star at lr* with its interval; small hollow marks are runs
/// beside the ladder.
std::string lr_curve_svg(std::span<const LrCurve> curves, SvgKind kind);

}  // namespace difftape::study
