#include "train/study/figures/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace difftape::study::svg {

namespace {

constexpr double kWidth = 300, kLeft = 34, kRight = kWidth - 6, kTop = 4;
constexpr const char* kMiddle = "text-anchor=\"middle\"";

/// About five of `count` names, the first among them.
std::size_t stride(std::size_t count) { return std::max<std::size_t>(1, (count + 4) / 5); }

double row_height(const HeatMap& map) {
  return map.written ? 22 : std::clamp(96.0 / static_cast<double>(map.rows.size()), 5.0, 18.0);
}

void draw_names(Drawing& drawing, const HeatMap& map, double cell, double row, double bottom) {
  drawing.open(kMuted);
  for (std::size_t r = 0; r < map.rows.size(); r += row < 9 ? stride(map.rows.size()) : 1) {
    drawing.text({kLeft - 4, bottom - (static_cast<double>(r) + 0.5) * row + 3.2},
                 shortened(map.rows[r], 4), "text-anchor=\"end\" font-size=\"9\"");
  }
  for (std::size_t c = 0; c < map.columns.size(); c += stride(map.columns.size())) {
    drawing.text({kLeft + (static_cast<double>(c) + 0.5) * cell, bottom + 11}, map.columns[c],
                 "text-anchor=\"middle\" font-size=\"9\"");
  }
  drawing.text({0.5 * (kLeft + kRight), bottom + 23}, map.x_label, kMiddle);
  const double middle = 0.5 * (kTop + bottom);
  drawing.text({9, middle}, map.y_label,
               fmt::format("{} transform=\"rotate(-90 9 {})\"", kMiddle, number(middle)));
  drawing.close();
}

}  // namespace

Scale Scale::of(const Range& range) {
  return {range, range.low > 0 && range.high > 20 * range.low};
}

double Scale::share(double value) const {
  if (range.high <= range.low) return 0.5;
  if (!log) return (value - range.low) / (range.high - range.low);
  return std::log(value / range.low) / std::log(range.high / range.low);
}

Drawing heat_map(const HeatMap& map, const Scale& scale) {
  const double cell = (kRight - kLeft) / static_cast<double>(map.columns.size());
  const double row = row_height(map), bottom = kTop + row * static_cast<double>(map.rows.size());
  Drawing drawing(kWidth, bottom + 28, map.label);
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const double value = map.values[r * map.columns.size() + c];
      if (std::isnan(value)) continue;
      const double x = kLeft + static_cast<double>(c) * cell;
      const double y = bottom - static_cast<double>(r + 1) * row, t = scale.share(value);
      drawing.rect({x, y}, cell - (cell > 8 ? 0.6 : 0), row - 0.6,
                   fmt::format("fill=\"{}\"", hex(sequential(t))),
                   fmt::format("{} {}, {} {}: {}", map.y_label, map.rows[r], map.x_label,
                               map.columns[c], short_number(value)));
      if (map.written) {
        drawing.text({x + 0.5 * cell, y + 0.5 * row + 3.2}, fmt::format("{:.2f}", value),
                     fmt::format("{} fill=\"{}\"", kMiddle, t < 0.6 ? "#ffffff" : "#000000"));
      }
    }
  }
  draw_names(drawing, map, cell, row, bottom);
  return drawing;
}

Drawing color_bar(const Scale& scale) {
  return color_bar(sequential, 0,
                   {{0, short_number(scale.range.low, 3)}, {1, short_number(scale.range.high, 3)}});
}

Drawing color_bar(Rgb (*color)(double), double from, const std::vector<BarTick>& ticks) {
  constexpr int kSteps = 40;
  constexpr double kFrom = 16, kBar = 128;
  Drawing drawing(kBar + 2 * kFrom, 22,
                  fmt::format("colours from {} to {}", ticks.front().name, ticks.back().name));
  for (int i = 0; i < kSteps; ++i) {
    const double t = from + (1 - from) * (i + 0.5) / kSteps;
    drawing.rect({kFrom + kBar * i / kSteps, 1}, kBar / kSteps + 0.3, 8,
                 fmt::format("fill=\"{}\"", hex(color(t))));
  }
  drawing.open(kMuted);
  for (const BarTick& tick : ticks) {
    drawing.text({kFrom + kBar * tick.at, 19}, tick.name, kMiddle);
  }
  drawing.close();
  return drawing;
}

}  // namespace difftape::study::svg
