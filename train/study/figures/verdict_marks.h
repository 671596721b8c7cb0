#pragma once
// How a verdict looks: a colour and a shape, since a colour alone says nothing to some readers.

#include <span>
#include <string>
#include <string_view>

#include "train/study/figures/drawing.h"

namespace difftape::study::svg {

struct VerdictLook {
  const char* verdict;  ///< the word
  Marker shape;
  int arm;      ///< whose colour it has (drawing.h); -1: grey
  bool filled;  ///< or a ring
};

/// Supported, contradicted, equivalent, undecided, not testable.
std::span<const VerdictLook> verdict_looks();
/// The look of the word that a verdict begins with; that of undecided if it is none of them.
const VerdictLook& look_of(std::string_view verdict);

std::string fill(const VerdictLook& look);
std::string stroke(const VerdictLook& look);
void draw_verdict(Drawing& drawing, const VerdictLook& look, Point at,
                  const std::string& title = "");

}  // namespace difftape::study::svg
