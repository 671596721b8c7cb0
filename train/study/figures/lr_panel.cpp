#include "train/study/figures/lr_panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "train/stats/descriptive.h"

namespace difftape::study::svg {

namespace {

constexpr double kTitle = 18,
                 kStripLine = 11;  ///< heights of the title and a line of diverged runs
constexpr double kStar = 6.5;
/// Losses further above the lowest than this many times the median rung are cut off.
constexpr double kCutOff = 4;

bool has_diverged(const LrCurve& curve) {
  return std::ranges::any_of(curve.points, [](const LrPoint& p) { return p.diverged > 0; });
}

/// A line with a point more where it crosses the top.
Points with_crossings(const Points& line, double top) {
  Points points;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (i > 0 && (line[i].y < top) != (line[i - 1].y < top)) {
      const Point a = line[i - 1], b = line[i];
      points.push_back({a.x + (b.x - a.x) * (top - a.y) / (b.y - a.y), top});
    }
    points.push_back(line[i]);
  }
  return points;
}

/// The parts of a line that lie below the top.
std::vector<Points> below_top(const Points& line, double top) {
  std::vector<Points> parts(1);
  for (const Point& point : with_crossings(line, top)) {
    if (point.y >= top) {
      parts.back().push_back(point);
    } else if (!parts.back().empty()) {
      parts.emplace_back();
    }
  }
  return parts;
}

std::string title_of(const LrCurve& curve, const LrPoint& point) {
  const double margin = point.loss.half_width;
  return fmt::format("{}, lr {}: {:.4f}{}, {} of {} diverged", curve.arm, short_number(point.lr),
                     point.loss.mean, std::isfinite(margin) ? fmt::format(" ± {:.4f}", margin) : "",
                     point.diverged, point.runs);
}

/// From the lowest to the highest seed of each rung.
void draw_band(Drawing& drawing, const PanelCurve& drawn, const Axis& x, const Axis& y) {
  Points high, low, band;
  for (const LrPoint& rung : drawn.curve->ladder) {
    if (rung.values.empty()) continue;
    const auto [least, most] = std::ranges::minmax(rung.values);
    high.push_back({x.at(rung.lr), y.at(most)});
    low.push_back({x.at(rung.lr), y.at(least)});
  }
  if (high.size() < 2 || drawn.curve->seeds.size() < 2) return;
  std::ranges::reverse(low);
  for (const Points& side : {high, low}) {
    for (const Point& point : with_crossings(side, y.to()))
      band.push_back({point.x, std::max(point.y, y.to())});
  }
  drawing.polygon(band, fill(drawn.arm) + " fill-opacity=\"0.15\"");
}

void draw_line(Drawing& drawing, const PanelCurve& drawn, const Axis& x, const Axis& y) {
  Points line;
  for (const LrPoint& rung : drawn.curve->ladder)
    line.push_back({x.at(rung.lr), y.at(rung.loss.mean)});
  for (const Points& part : below_top(line, y.to()))
    drawing.polyline(part, stroke(drawn.arm) + " stroke-width=\"1.4\" fill=\"none\"");
  for (const LrPoint& point : drawn.curve->points) {
    const auto is_rung = [&](const LrPoint& rung) { return rung.lr == point.lr; };
    const auto rung = std::ranges::find_if(drawn.curve->ladder, is_rung);
    const LrPoint& shown = rung == drawn.curve->ladder.end() ? point : *rung;
    const Point at{x.at(shown.lr), y.at(shown.loss.mean)};
    if (!std::isfinite(shown.loss.mean) || at.y < y.to()) continue;
    if (&shown == &point) {  // beside the ladder
      drawing.open(stroke(drawn.arm) + " stroke-width=\"1\"");
      drawing.marker(marker(drawn.arm), at, 2.4, "class=\"hollow\" fill=\"#ffffff\"",
                     title_of(*drawn.curve, shown));
      drawing.close();
    } else {
      drawing.marker(marker(drawn.arm), at, 2.4, fill(drawn.arm), title_of(*drawn.curve, shown));
    }
  }
}

/// The star at lr*, with the interval of lr* through it.
void draw_optimum(Drawing& drawing, const PanelCurve& drawn, const Axis& x, const Axis& y) {
  const stats::LrOptimum& found = drawn.curve->optimum;
  if (std::isnan(found.lr)) return;
  const Point at{x.at(found.lr), y.at(found.loss)};
  if (std::isfinite(found.low)) {
    drawing.open(stroke(drawn.arm) + " stroke-width=\"1.2\" stroke-opacity=\"0.75\"");
    for (const double end : {found.low, found.high})
      drawing.line({x.at(end), at.y - 3}, {x.at(end), at.y + 3});
    drawing.line({x.at(found.low), at.y}, {x.at(found.high), at.y});
    drawing.close();
  }
  const std::string interval =
      std::isfinite(found.low) ? fmt::format(" ({:.3g} to {:.3g})", found.low, found.high) : "";
  drawing.open("class=\"star\" stroke=\"#ffffff\" stroke-width=\"0.9\"");
  drawing.marker(Marker::star, at, kStar, fill(drawn.arm),
                 fmt::format("{}: lr* {:.3g}{}, loss {:.4f}", drawn.curve->arm, found.lr, interval,
                             found.loss));
  drawing.close();
}

}  // namespace

double LrPanel::head() const {
  const auto lines = std::ranges::count_if(
      curves, [](const PanelCurve& each) { return has_diverged(*each.curve); });
  return (title.empty() ? 6 : kTitle) +
         (lines == 0 ? 0 : kStripLine * static_cast<double>(lines) + 4);
}

std::set<double> LrPanel::rates() const {
  std::set<double> rates;
  for (const PanelCurve& each : curves) {
    for (const LrPoint& point : each.curve->points) rates.insert(point.lr);
  }
  return rates;
}

Range LrPanel::losses() const {
  Range all, shown;
  std::vector<double> means;
  for (const PanelCurve& each : curves) {
    for (const LrPoint& point : each.curve->points) {
      if (!std::isfinite(point.loss.mean)) continue;
      means.push_back(point.loss.mean);
      for (const double value : point.values) all.add(value);
    }
    all.add(each.curve->optimum.loss);
  }
  if (means.empty()) return all;
  const double lowest = stats::quantile(means, 0), middle = stats::quantile(means, 0.5);
  shown.add(all.low);
  shown.add(middle > lowest ? std::min(all.high, lowest + kCutOff * (middle - lowest)) : all.high);
  return shown;
}

/// A line an arm that ever diverged: how many runs of how many, at which learning rates.
void LrPanel::draw_diverged(Drawing& drawing, double bottom, const Axis& x) const {
  double y = bottom;
  for (auto each = curves.rbegin(); each != curves.rend(); ++each) {
    if (!has_diverged(*each->curve)) continue;
    for (const LrPoint& point : each->curve->points) {
      if (point.diverged == 0) continue;
      const double at = x.at(point.lr) - 8;
      drawing.marker(Marker::cross, {at, y - 3}, 2.6,
                     stroke(each->arm) + " stroke-width=\"1.5\" fill=\"none\"");
      drawing.text({at + 5, y}, fmt::format("{}/{}", point.diverged, point.runs),
                   std::string(kMuted) + " font-size=\"8\"");
    }
    y -= kStripLine;
  }
  if (y < bottom)
    drawing.text({x.from(), bottom}, "diverged", std::string(kMuted) + " font-size=\"8\"");
}

void LrPanel::draw(Drawing& drawing, Point corner, double width, double head, double height) const {
  const double left = corner.x + kPanelLeft, right = corner.x + width - kPanelRight;
  const double top = corner.y + head, bottom = top + height;
  const std::set<double> lrs = rates();
  Range span;
  for (const double lr : lrs) span.add(lr);
  const Axis x = Axis(span, left, right, true).padded(lrs.size() > 1 ? 0.06 : 0);
  const Axis y = Axis(losses(), bottom, top, false).padded(0.05);
  const std::vector<double> ticks(lrs.begin(), lrs.end());
  const bool every = lrs.size() <= (is_wide ? 9 : 4);
  draw_axes(drawing, x, y, {"peak learning rate", is_first ? "final validation loss" : ""},
            every ? std::span<const double>(ticks) : std::span<const double>());
  drawing.text({left, corner.y + 11}, title, std::string(kText) + " font-weight=\"600\"");
  draw_diverged(drawing, top - 4, x);
  for (const PanelCurve& each : curves) draw_band(drawing, each, x, y);
  for (const PanelCurve& each : curves) draw_line(drawing, each, x, y);
  for (const PanelCurve& each : curves) draw_optimum(drawing, each, x, y);
}

}  // namespace difftape::study::svg
