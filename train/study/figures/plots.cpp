#include "train/study/figures/plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "train/study/figures/axis.h"

namespace difftape::study::svg {

namespace {

constexpr double kWidth = 440, kLeft = 48, kRight = kWidth - 14, kPlotHeight = 200;

Points positions(const Axis& x, const Axis& y, const std::vector<double>& xs,
                 const std::vector<double>& ys, bool log) {
  Points points;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (!log || ys[i] > 0) points.push_back({x.at(xs[i]), y.at(ys[i])});
  }
  return points;
}

void draw_line(Drawing& drawing, const Axis& x, const Axis& y, const Line& line, bool log) {
  if (!line.low.empty()) {
    Points band = positions(x, y, line.x, line.high, log);
    const Points low = positions(x, y, line.x, line.low, log);
    band.insert(band.end(), low.rbegin(), low.rend());
    drawing.polygon(band, fill(line.arm) + " fill-opacity=\"0.16\"");
  }
  const std::string ink = stroke(line.arm) + " fill=\"none\" stroke-linejoin=\"round\"";
  drawing.polyline(positions(x, y, line.x, line.y, log), ink + " stroke-width=\"1.2\"");
  for (const Point& spike : line.spikes) {
    if (log && spike.y <= 0) continue;
    const double at = std::clamp(y.at(spike.y), y.to() + 8, y.from());
    drawing.marker(Marker::down, {x.at(spike.x), at - 5}, 3, fill(line.arm));
  }
  for (const double end : line.ends) {
    drawing.marker(Marker::cross, {x.at(end), y.to() + 4}, 3.5,
                   stroke(line.arm) + " stroke-width=\"1.8\" fill=\"none\"");
  }
}

}  // namespace

Drawing line_plot(const LinePlot& plot) {
  std::vector<Entry> entries;
  Range xs, ys;
  for (const Line& line : plot.lines) {
    entries.push_back({line.name, line.arm});
    for (const double x : line.x) xs.add(x);
    for (const double x : line.ends) xs.add(x);
    for (const auto* values : {&line.y, &line.low, &line.high}) {
      for (const double y : *values) {
        if (!plot.log_y || y > 0) ys.add(y);
      }
    }
  }
  for (const Level& level : plot.levels) ys.add(level.y);
  const double top = 10 + legend(nullptr, {kLeft, 8}, kRight, entries);
  const double bottom = top + kPlotHeight;
  Drawing drawing(kWidth, bottom + 32, plot.title);
  legend(&drawing, {kLeft, 8}, kRight, entries);
  const Axis x(xs, kLeft, kRight, false), y = Axis(ys, bottom, top, plot.log_y).padded(0.03);
  draw_axes(drawing, x, y, {plot.x_label, plot.y_label});
  for (const Level& level : plot.levels) {
    if (plot.log_y && level.y <= 0) continue;
    const double at = y.at(level.y);
    drawing.line({kLeft, at}, {kRight, at},
                 "class=\"reference\" stroke=\"#5b646d\" stroke-dasharray=\"4 3\"");
    drawing.text({kRight, at - 4}, level.name, std::string(kMuted) + " text-anchor=\"end\"");
  }
  for (const Line& line : plot.lines) draw_line(drawing, x, y, line, plot.log_y);
  return drawing;
}

namespace {

constexpr double kMapWidth = 300, kMapRight = kMapWidth - 6, kMapTop = 4;
constexpr std::size_t kLongestRow = 24;  ///< characters of the name of a row
constexpr double kCellFont = 9;
constexpr const char* kMiddle = "text-anchor=\"middle\"";

/// About five of `count` names, the first among them.
std::size_t stride(std::size_t count) { return std::max<std::size_t>(1, (count + 4) / 5); }

/// Where the cells begin: right of the names of the rows.
double map_left(const HeatMap& map) {
  std::size_t longest = 3;
  for (const std::string& row : map.rows) longest = std::max(longest, row.size());
  return 19 + 9 * kCharacterWidth * static_cast<double>(std::min(longest, kLongestRow));
}

/// The numbers in the cells, with as many digits as fit; none if not even two do.
std::vector<std::string> cell_texts(const HeatMap& map, double cell) {
  constexpr std::size_t kMostRows = 16;
  if (map.rows.size() > kMostRows) return {};
  for (const int digits : {3, 2}) {
    std::vector<std::string> texts;
    std::size_t longest = 0;
    for (const double value : map.values) {
      texts.push_back(std::isnan(value) ? "" : short_number(value, digits));
      longest = std::max(longest, texts.back().size());
    }
    if (kCellFont * kCharacterWidth * static_cast<double>(longest) + 3 <= cell) return texts;
  }
  return {};
}

double row_height(const HeatMap& map, bool written) {
  const auto rows = static_cast<double>(map.rows.size());
  if (!written) return std::clamp(96.0 / rows, 5.0, 18.0);
  return std::max(18.0, 10 * kCharacterWidth * static_cast<double>(map.y_label.size()) / rows);
}

void draw_names(Drawing& drawing, const HeatMap& map, double cell, double row, double bottom) {
  const double left = map_left(map);
  drawing.open(kMuted);
  for (std::size_t r = 0; r < map.rows.size(); r += row < 9 ? stride(map.rows.size()) : 1) {
    drawing.text({left - 4, bottom - (static_cast<double>(r) + 0.5) * row + 3.2},
                 shortened(map.rows[r], kLongestRow), "text-anchor=\"end\" font-size=\"9\"");
  }
  for (std::size_t c = 0; c < map.columns.size(); c += stride(map.columns.size())) {
    drawing.text({left + (static_cast<double>(c) + 0.5) * cell, bottom + 11}, map.columns[c],
                 "text-anchor=\"middle\" font-size=\"9\"");
  }
  drawing.text({0.5 * (left + kMapRight), bottom + 23}, map.x_label, kMiddle);
  const double middle = 0.5 * (kMapTop + bottom);
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

double HeatMap::constant() const {
  Range range;
  for (const double value : values) range.add(value);
  return range.low == range.high ? range.low : std::numeric_limits<double>::quiet_NaN();
}

Drawing heat_map(const HeatMap& map, const Scale& scale) {
  const double left = map_left(map);
  const double cell = (kMapRight - left) / static_cast<double>(map.columns.size());
  const std::vector<std::string> texts = cell_texts(map, cell);
  const double row = row_height(map, !texts.empty()),
               bottom = kMapTop + row * static_cast<double>(map.rows.size());
  Drawing drawing(kMapWidth, bottom + 28, map.label);
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const double value = map.values[r * map.columns.size() + c];
      if (std::isnan(value)) continue;
      const double x = left + static_cast<double>(c) * cell;
      const double y = bottom - static_cast<double>(r + 1) * row, t = scale.share(value);
      drawing.rect({x, y}, cell - (cell > 8 ? 0.6 : 0), row - 0.6,
                   fmt::format("fill=\"{}\"", hex(sequential(t))),
                   fmt::format("{} {}, {} {}: {}", map.y_label, map.rows[r], map.x_label,
                               map.columns[c], short_number(value)));
      if (!texts.empty()) {
        drawing.text({x + 0.5 * cell, y + 0.5 * row + 3.2}, texts[r * map.columns.size() + c],
                     fmt::format("{} font-size=\"{}\" fill=\"{}\"", kMiddle, kCellFont,
                                 t < 0.6 ? "#ffffff" : "#000000"));
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
