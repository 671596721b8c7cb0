#pragma once
// How a verdict looks, in the forest plot and in the table of claims: a colour and a shape, since a
// colour alone says nothing to some readers.

#include <span>
#include <string>
#include <string_view>

#include "train/study/figures/drawing.h"

namespace difftape::study::svg {

struct VerdictLook {
  const char* verdict;  ///< the words
  Marker shape;
  int arm;      ///< whose colour it has (drawing.h); -1: grey
  bool filled;  ///< or its outline
};

/// No two have the same shape and filling: supported, contradicted, equivalent, each also as a
/// hint, which is the outline of its shape; undecided, not testable.
std::span<const VerdictLook> verdict_looks();
/// The look of the words that a verdict begins with; that of not testable if it is none of them.
const VerdictLook& look_of(std::string_view verdict);

std::string fill(const VerdictLook& look);
std::string stroke(const VerdictLook& look);
void draw_verdict(Drawing& drawing, const VerdictLook& look, Point at,
                  const std::string& title = "");
/// The mark alone, to stand before the words in a page.
std::string verdict_icon(const VerdictLook& look);

}  // namespace difftape::study::svg
