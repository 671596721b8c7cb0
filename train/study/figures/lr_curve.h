#pragma once
// The learning-rate curve: what each arm reaches at each peak learning rate.

#include <span>
#include <string>

#include "train/study/compare/curves.h"
#include "train/study/figures/drawing.h"

namespace difftape::study {

/// Final validation loss against peak learning rate (logarithmic), one line an arm through the
/// means, with their 95 % intervals and every seed as a small dot; above, how many runs diverged at
/// each. Arms stand beside each other at a learning rate, so that they do not overlap. `inlined`
/// takes the colours of the page around it, `standalone` is a file on white. Points without a loss
/// are left out.
std::string lr_curve_svg(std::span<const LrCurve> curves, SvgKind kind);

}  // namespace difftape::study
