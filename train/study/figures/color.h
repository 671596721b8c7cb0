#pragma once
// Colours that are told apart without red against green, on paper and on a screen.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "train/study/figures/drawing.h"

namespace difftape::study::svg {

struct Rgb {
  std::uint8_t red, green, blue;
};
/// "#0072b2".
std::string hex(Rgb color);

/// Viridis, which gets lighter all the way: from dark blue at 0 to yellow at 1. `t` is clamped.
Rgb sequential(double t);
/// Blue at -1, white at 0, orange-red at 1, equally dark on both sides. `t` is clamped.
Rgb diverging(double t);

/// Colours of arms: those of Okabe and Ito (2008), in an order that keeps neighbours far apart.
inline constexpr std::size_t kArmColors = 8;
/// `class="stroke-1" stroke="#0072b2"`; from the ninth arm on the colours repeat, dashed.
std::string stroke(std::size_t arm);
/// `class="fill-1" fill="#0072b2"`.
std::string fill(std::size_t arm);
Marker marker(std::size_t arm);

/// Attributes of what is not data.
inline constexpr const char* kText = "class=\"ink\" fill=\"#1c2126\"";
inline constexpr const char* kMuted = "class=\"soft\" fill=\"#5b646d\"";
inline constexpr const char* kGrid = "class=\"grid\" stroke=\"#e6e9ec\" stroke-width=\"0.75\"";
inline constexpr const char* kFrame = "class=\"frame\" stroke=\"#aab2ba\" stroke-width=\"0.75\"";

}  // namespace difftape::study::svg
