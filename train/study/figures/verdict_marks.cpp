#include "train/study/figures/verdict_marks.h"

#include <algorithm>
#include <iterator>

namespace difftape::study::svg {

namespace {

constexpr VerdictLook kLooks[] = {{"supported", Marker::circle, 1, true},
                                  {"contradicted", Marker::diamond, 2, true},
                                  {"equivalent", Marker::square, 3, true},
                                  {"hint: supported", Marker::circle, 1, false},
                                  {"hint: contradicted", Marker::diamond, 2, false},
                                  {"hint: equivalent", Marker::square, 3, false},
                                  {"undecided", Marker::triangle, -1, false},
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
