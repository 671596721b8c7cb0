#include "train/study/figures/line_plot.h"

#include <algorithm>
#include <cmath>

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
  if (plot.reference) ys.add(*plot.reference);
  const double top = 10 + legend(nullptr, {kLeft, 8}, kRight, entries);
  const double bottom = top + kPlotHeight;
  Drawing drawing(kWidth, bottom + 32, plot.title);
  legend(&drawing, {kLeft, 8}, kRight, entries);
  const Axis x(xs, kLeft, kRight, false), y = Axis(ys, bottom, top, plot.log_y).padded(0.03);
  draw_axes(drawing, x, y, {plot.x_label, plot.y_label});
  if (plot.reference && (!plot.log_y || *plot.reference > 0)) {
    const double at = y.at(*plot.reference);
    drawing.line({kLeft, at}, {kRight, at},
                 "class=\"reference\" stroke=\"#5b646d\" stroke-dasharray=\"4 3\"");
    drawing.text({kRight, at - 4}, plot.reference_name,
                 std::string(kMuted) + " text-anchor=\"end\"");
  }
  for (const Line& line : plot.lines) draw_line(drawing, x, y, line, plot.log_y);
  return drawing;
}

}  // namespace difftape::study::svg
