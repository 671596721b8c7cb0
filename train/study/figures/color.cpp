#include "train/study/figures/color.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace difftape::study::svg {

namespace {

/// Ten equidistant colours of viridis (van der Walt and Smith, 2015).
constexpr Rgb kViridis[] = {{0x44, 0x01, 0x54}, {0x48, 0x28, 0x78}, {0x3e, 0x49, 0x89},
                            {0x31, 0x68, 0x8e}, {0x26, 0x82, 0x8e}, {0x1f, 0x9e, 0x89},
                            {0x35, 0xb7, 0x79}, {0x6e, 0xce, 0x58}, {0xb5, 0xde, 0x2b},
                            {0xfd, 0xe7, 0x25}};

/// Half of "RdBu" of ColorBrewer on the cool side, "Oranges" on the warm one, met in white.
constexpr Rgb kDiverging[] = {{0x05, 0x30, 0x61}, {0x21, 0x66, 0xac}, {0x6b, 0xac, 0xd1},
                              {0xd1, 0xe5, 0xf0}, {0xff, 0xff, 0xff}, {0xfd, 0xdb, 0xc0},
                              {0xf0, 0x9c, 0x5a}, {0xc2, 0x50, 0x0e}, {0x6b, 0x22, 0x04}};

constexpr const char* kArms[kArmColors] = {"#000000", "#0072b2", "#d55e00", "#009e73",
                                           "#cc79a7", "#e69f00", "#56b4e9", "#c9b800"};
constexpr const char* kDashes[] = {"", " stroke-dasharray=\"7 3\"", " stroke-dasharray=\"2 2\"",
                                   " stroke-dasharray=\"8 2 2 2\""};

Rgb between(std::span<const Rgb> colors, double t) {
  const double position = std::clamp(t, 0.0, 1.0) * static_cast<double>(colors.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(position), colors.size() - 2);
  const double part = position - static_cast<double>(below);
  const auto mix = [part](std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(std::lround((1 - part) * a + part * b));
  };
  const Rgb a = colors[below], b = colors[below + 1];
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

}  // namespace

std::string hex(Rgb color) {
  return fmt::format("#{:02x}{:02x}{:02x}", color.red, color.green, color.blue);
}

Rgb sequential(double t) { return between(kViridis, t); }

Rgb diverging(double t) { return between(kDiverging, 0.5 + 0.5 * t); }

std::string stroke(std::size_t arm) {
  return fmt::format("class=\"stroke-{}\" stroke=\"{}\"{}", arm % kArmColors,
                     kArms[arm % kArmColors], kDashes[arm / kArmColors % std::size(kDashes)]);
}

std::string fill(std::size_t arm) {
  return fmt::format("class=\"fill-{}\" fill=\"{}\"", arm % kArmColors, kArms[arm % kArmColors]);
}

Marker marker(std::size_t arm) {
  constexpr Marker kShapes[] = {Marker::circle, Marker::square, Marker::triangle, Marker::diamond,
                                Marker::down};
  return kShapes[arm % std::size(kShapes)];
}

}  // namespace difftape::study::svg
