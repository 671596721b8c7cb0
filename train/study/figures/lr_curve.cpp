#include "train/study/figures/lr_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "train/study/figures/axis.h"

namespace difftape::study {

namespace {

using namespace svg;

constexpr double kWidth = 440, kLeft = 48, kRight = kWidth - 14, kPlotHeight = 220;
constexpr double kStripLine = 11;  ///< a line of the strip of diverged runs
constexpr double kLogFrom = 1.6;   ///< a wider span of losses than this ratio gets a log axis

/// Losses at all learning rates; an interval may reach far beyond what was measured and is then
/// cut.
Range losses(std::span<const LrCurve> curves) {
  Range range;
  for (const LrCurve& curve : curves) {
    for (const LrPoint& point : curve.points) {
      range.add(point.loss.mean);
      for (const double value : point.values) range.add(value);
    }
  }
  return range;
}

/// Arms beside each other: an offset in units, 0 in the middle.
double offset(std::size_t arm, std::size_t arms, double room) {
  const double step = std::min(7.0, 0.6 * room / static_cast<double>(arms));
  return step * (static_cast<double>(arm) - 0.5 * static_cast<double>(arms - 1));
}

/// The least distance between neighbouring learning rates, in units.
double room_of(const std::set<double>& lrs, const Axis& x) {
  double room = x.to() - x.from();
  for (auto lr = lrs.begin(); lr != lrs.end() && std::next(lr) != lrs.end(); ++lr) {
    room = std::min(room, x.at(*std::next(lr)) - x.at(*lr));
  }
  return room;
}

void draw_point(Drawing& drawing, const LrCurve& curve, const LrPoint& point, std::size_t arm,
                double x, const Axis& y) {
  const auto within = [&](double value) {  // positions, y downwards
    return std::clamp(value > 0 ? y.at(value) : y.from(), y.to(), y.from());
  };
  if (std::isfinite(point.loss.half_width)) {
    const double low = within(point.loss.low()), high = within(point.loss.high());
    drawing.open(svg::stroke(arm) + " stroke-width=\"1\"");
    drawing.line({x, low}, {x, high});
    for (const double end : {low, high}) {  // an interval that is cut has no cap
      if (end > y.to() && end < y.from()) drawing.line({x - 2.5, end}, {x + 2.5, end});
    }
    drawing.close();
  }
  if (point.values.size() > 1) {
    for (const double value : point.values) {
      if (std::isfinite(value)) {
        drawing.marker(Marker::circle, {x, y.at(value)}, 1.5,
                       svg::fill(arm) + " fill-opacity=\"0.55\"");
      }
    }
  }
  const double margin = point.loss.half_width;
  drawing.marker(
      svg::marker(arm), {x, y.at(point.loss.mean)}, 3, svg::fill(arm),
      fmt::format("{}, lr {}: {:.4f}{}, {} of {} diverged", curve.arm, short_number(point.lr),
                  point.loss.mean, std::isfinite(margin) ? fmt::format(" ± {:.4f}", margin) : "",
                  point.diverged, point.runs));
}

/// One line an arm that ever diverged: how many runs of how many, at which learning rates.
double draw_strip(Drawing* drawing, std::span<const LrCurve> curves, double top, const Axis& x) {
  double y = top;
  for (std::size_t arm = 0; arm < curves.size(); ++arm) {
    const auto& points = curves[arm].points;
    if (std::none_of(points.begin(), points.end(), [](auto& p) { return p.diverged > 0; }))
      continue;
    y += kStripLine;
    for (const LrPoint& point : points) {
      if (!drawing || point.diverged == 0) continue;
      const double at = x.at(point.lr) - 8;
      drawing->marker(Marker::cross, {at, y - 3}, 2.8,
                      svg::stroke(arm) + " stroke-width=\"1.6\" fill=\"none\"");
      drawing->text({at + 6, y}, fmt::format("{}/{}", point.diverged, point.runs),
                    std::string(kMuted) + " font-size=\"8.5\"");
    }
  }
  if (drawing && y > top) {
    drawing->text({kLeft - 5, top + kStripLine}, "diverged",
                  std::string(kMuted) + " font-size=\"8.5\" text-anchor=\"end\"");
  }
  return y > top ? y - top + 6 : 0;
}

void draw_curve(Drawing& drawing, const LrCurve& curve, std::size_t arm, double shift,
                const Axis& x, const Axis& y) {
  Points line;
  for (const LrPoint& point : curve.points) {
    if (std::isfinite(point.loss.mean))
      line.push_back({x.at(point.lr) + shift, y.at(point.loss.mean)});
  }
  drawing.polyline(line, svg::stroke(arm) + " stroke-width=\"1.4\" fill=\"none\"");
  for (const LrPoint& point : curve.points) {
    if (std::isfinite(point.loss.mean)) {
      draw_point(drawing, curve, point, arm, x.at(point.lr) + shift, y);
    }
  }
}

}  // namespace

std::string lr_curve_svg(std::span<const LrCurve> curves, SvgKind kind) {
  std::set<double> lrs;
  std::vector<Entry> entries;
  for (std::size_t arm = 0; arm < curves.size(); ++arm) {
    entries.push_back({curves[arm].arm, arm});
    for (const LrPoint& point : curves[arm].points) lrs.insert(point.lr);
  }
  Range span;
  for (const double lr : lrs) span.add(lr);
  const Axis x = Axis(span, kLeft, kRight, true).padded(lrs.size() > 1 ? 0.06 : 0);
  const double strip = 12 + legend(nullptr, {kLeft, 9}, kRight, entries);
  const double top = strip + draw_strip(nullptr, curves, strip, x), bottom = top + kPlotHeight;
  Drawing drawing(kWidth, bottom + 34, "Final validation loss against peak learning rate");
  legend(&drawing, {kLeft, 9}, kRight, entries);
  draw_strip(&drawing, curves, strip, x);
  const Range range = losses(curves);
  const bool log = range.low > 0 && range.high > kLogFrom * range.low;
  const Axis y = Axis(range, bottom, top, log).padded(0.05);
  const std::vector<double> ticks(lrs.begin(), lrs.end());
  draw_axes(drawing, x, y, {"peak learning rate", log ? "validation loss, log" : "validation loss"},
            lrs.size() <= 9 ? std::span<const double>(ticks) : std::span<const double>());
  const double room = room_of(lrs, x);
  for (std::size_t arm = 0; arm < curves.size(); ++arm) {
    draw_curve(drawing, curves[arm], arm, offset(arm, curves.size(), room), x, y);
  }
  return kind == SvgKind::inlined ? drawing.inlined() : drawing.standalone(2);
}

}  // namespace difftape::study
