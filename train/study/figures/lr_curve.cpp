#include "train/study/figures/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "train/stats/descriptive.h"
#include "train/study/figures/drawing.h"
#include "train/system/number.h"

namespace difftape::study {

namespace {

using namespace svg;

struct PanelCurve {
  std::size_t arm;
  const LrCurve* curve;
};

/// Panel of the arms of one size and task.
struct LrPanel {
  std::string title;
  double parameters;
  std::vector<PanelCurve> curves;
  bool is_wide;   ///< whether a label fits at every learning rate
  bool is_first;  ///< first of its row, which labels the axis of losses
};

constexpr double kPanelLeft = 48, kPanelRight = 12, kPanelFoot = 34;
constexpr double kTitle = 18,
                 kStripLine = 11;  ///< heights of the title, and of a line of diverged runs
constexpr double kStar = 6.5;
/// Losses are cut off above the lowest one plus this many times the distance to the median rung.
constexpr double kCutOff = 4;

bool has_diverged(const LrCurve& curve) {
  return std::ranges::any_of(curve.points, [](const LrPoint& p) { return p.diverged > 0; });
}

/// Adds points to a line where it crosses the top.
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

/// Returns the parts of a line below the top.
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
  return fmt::format("{}, lr {}: {:.4f}{}, {} of {} diverged", curve.arm,
                     system::short_number(point.lr), point.loss.mean,
                     std::isfinite(margin) ? fmt::format(" ± {:.4f}", margin) : "", point.diverged,
                     point.runs);
}

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
    if (&shown == &point) {  // outside the ladder
      drawing.open(stroke(drawn.arm) + " stroke-width=\"1\"");
      drawing.marker(marker(drawn.arm), at, 2.4, "class=\"hollow\" fill=\"#ffffff\"",
                     title_of(*drawn.curve, shown));
      drawing.close();
    } else {
      drawing.marker(marker(drawn.arm), at, 2.4, fill(drawn.arm), title_of(*drawn.curve, shown));
    }
  }
}

/// Draws the star at lr*, with the interval of lr* through it.
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

/// Returns the height above the plot, for the title and diverged runs.
double head_of(const LrPanel& panel) {
  const auto lines = std::ranges::count_if(
      panel.curves, [](const PanelCurve& each) { return has_diverged(*each.curve); });
  return (panel.title.empty() ? 6 : kTitle) +
         (lines == 0 ? 0 : kStripLine * static_cast<double>(lines) + 4);
}

Range losses_of(const LrPanel& panel) {
  Range all, shown;
  std::vector<double> means;
  for (const PanelCurve& each : panel.curves) {
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

/// Draws a line per arm with diverged runs: their fraction at each learning rate.
void draw_diverged(Drawing& drawing, const LrPanel& panel, double bottom, const Axis& x) {
  double y = bottom;
  for (auto each = panel.curves.rbegin(); each != panel.curves.rend(); ++each) {
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

/// Draws the panel below and right of `corner`: its head, the plot of this height, and the labels
/// of its axis.
void draw_panel(Drawing& drawing, const LrPanel& panel, Point corner, double width, double head,
                double height) {
  const double left = corner.x + kPanelLeft, right = corner.x + width - kPanelRight;
  const double top = corner.y + head, bottom = top + height;
  std::set<double> lrs;
  Range span;
  for (const PanelCurve& each : panel.curves) {
    for (const LrPoint& point : each.curve->points) lrs.insert(point.lr), span.add(point.lr);
  }
  const Axis x = Axis(span, left, right, true).padded(lrs.size() > 1 ? 0.06 : 0);
  const Axis y = Axis(losses_of(panel), bottom, top, false).padded(0.05);
  std::vector<double> ticks(lrs.begin(), lrs.end());
  if (lrs.size() > (panel.is_wide ? 9u : 4u)) ticks.clear();  // selects round ticks
  draw_axes(drawing, x, y, {"peak learning rate", panel.is_first ? "final validation loss" : ""},
            ticks);
  drawing.text({left, corner.y + 11}, panel.title, std::string(kText) + " font-weight=\"600\"");
  draw_diverged(drawing, panel, top - 4, x);
  for (const PanelCurve& each : panel.curves) draw_band(drawing, each, x, y);
  for (const PanelCurve& each : panel.curves) draw_line(drawing, each, x, y);
  for (const PanelCurve& each : panel.curves) draw_optimum(drawing, each, x, y);
}

constexpr double kSingleWidth = 440, kSingleHeight = 230;  ///< a single panel
constexpr double kWidth = 960, kHeight = 200;              ///< several, in rows of at most four
constexpr std::size_t kColumns = 4;
constexpr double kGapHeight = 130, kGapHead = 34;

/// Returns "0.067 M parameters".
std::string size_text(std::int64_t parameters) {
  const auto count = static_cast<double>(parameters);
  return count < 1e3      ? fmt::format("{} parameters", parameters)
         : count < 9.9e7  ? fmt::format("{:.2g} M parameters", count / 1e6)
         : count < 9.99e8 ? fmt::format("{:.0f} M parameters", count / 1e6)
                          : fmt::format("{:.2g} B parameters", count / 1e9);
}

bool are_of_one_panel(const LrCurve& a, const LrCurve& b) {
  return a.task == b.task && a.d_model == b.d_model;
}

std::vector<std::string> names_of(std::span<const LrCurve> curves) {
  std::vector<std::string> names;
  for (const LrCurve& curve : curves) add_once(names, curve.arm);
  return names;
}

std::vector<LrPanel> panels_of(std::span<const LrCurve> curves) {
  const std::vector<std::string> names = names_of(curves);
  std::vector<LrPanel> panels;
  for (const LrCurve& curve : curves) {
    auto panel = std::ranges::find_if(panels, [&](const LrPanel& each) {
      return are_of_one_panel(*each.curves.front().curve, curve);
    });
    if (panel == panels.end()) panel = panels.insert(panel, {{}, 0, {}, false, false});
    const auto color = std::ranges::find(names, curve.arm) - names.begin();
    panel->curves.push_back({static_cast<std::size_t>(color), &curve});
    if (panel->parameters == 0 || curve.is_baseline)
      panel->parameters = static_cast<double>(curve.parameters);
  }
  std::ranges::stable_sort(panels, {}, &LrPanel::parameters);
  for (LrPanel& panel : panels) {
    const LrCurve& first = *panel.curves.front().curve;
    if (panels.size() < 2) continue;
    panel.title = size_text(static_cast<std::int64_t>(panel.parameters));
    const auto sizes = std::ranges::count_if(panels, [&](const LrPanel& other) {
      return other.curves.front().curve->d_model == first.d_model;
    });
    if (sizes > 1 && !first.task.empty()) panel.title += ", " + first.task;
  }
  return panels;
}

struct Gap {
  double millions;  ///< millions of parameters
  const LrGap* gap;
};
struct GapLine {
  std::size_t arm;
  std::vector<Gap> gaps;
};

std::vector<GapLine> gap_lines(const std::vector<LrPanel>& panels) {
  std::vector<GapLine> lines;
  for (const LrPanel& panel : panels) {
    for (const PanelCurve& each : panel.curves) {
      if (each.curve->gap.difference.pairs == 0) continue;
      auto line = std::ranges::find(lines, each.arm, &GapLine::arm);
      if (line == lines.end()) line = lines.insert(line, {each.arm, {}});
      line->gaps.push_back({panel.parameters / 1e6, &each.curve->gap});
    }
  }
  const bool several =
      std::ranges::any_of(lines, [](const GapLine& l) { return l.gaps.size() > 1; });
  return several ? lines : std::vector<GapLine>();
}

void draw_gap_line(Drawing& drawing, const GapLine& line, double shift, const Axis& x,
                   const Axis& y) {
  const auto at = [&](const Gap& gap) {
    return Point{x.at(gap.millions) + shift, y.at(gap.gap->difference.difference.mean)};
  };
  Points means;
  for (const Gap& gap : line.gaps) means.push_back(at(gap));
  drawing.polyline(means,
                   stroke(line.arm) + " stroke-width=\"1\" stroke-opacity=\"0.5\" fill=\"none\"");
  for (const Gap& gap : line.gaps) {
    const stats::Interval& interval = gap.gap->difference.difference;
    const Point mark = at(gap);
    drawing.open(stroke(line.arm) + " stroke-width=\"1.2\"");
    if (std::isfinite(interval.half_width))
      drawing.line({mark.x, y.at(interval.low())}, {mark.x, y.at(interval.high())});
    const std::string title = fmt::format(
        "{:.3g} M parameters: {:+.4f}{}, {} seeds{}", gap.millions, interval.mean,
        std::isfinite(interval.half_width) ? fmt::format(" ± {:.4f}", interval.half_width) : "",
        gap.gap->difference.pairs, gap.gap->fresh ? "" : " of the ladder");
    drawing.marker(marker(line.arm), mark, 3.2,
                   gap.gap->fresh ? fill(line.arm) : "class=\"hollow\" fill=\"#ffffff\"", title);
    drawing.close();
  }
}

double rounded(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  return unit * std::round(value / unit);
}

void draw_gaps(Drawing& drawing, const std::vector<GapLine>& lines, Point corner, double width,
               const std::string& baseline, const char* unit) {
  Range sizes, gaps;
  gaps.add(0);
  std::vector<double> ticks;
  for (const GapLine& line : lines) {
    for (const Gap& gap : line.gaps) {
      const stats::Interval& interval = gap.gap->difference.difference;
      sizes.add(gap.millions);
      add_once(ticks, rounded(gap.millions));
      for (const double value : {interval.mean, interval.low(), interval.high()}) gaps.add(value);
    }
  }
  const double left = corner.x + kPanelLeft, right = corner.x + width - kPanelRight;
  const double top = corner.y + kGapHead - 10, bottom = top + kGapHeight;
  const Axis x = Axis(sizes, left, right, true).padded(0.08);
  const Axis y = Axis(gaps, bottom, top, false).padded(0.08);
  drawing.text({left, corner.y + 11},
               fmt::format("Gap to {} at each arm's own rate, {}", baseline, unit),
               std::string(kText) + " font-weight=\"600\"");
  draw_axes(drawing, x, y, {"parameters, millions", "gap"}, ticks);
  drawing.line({left, y.at(0)}, {right, y.at(0)},
               "class=\"reference\" stroke=\"#5b646d\" stroke-width=\"1\"");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double shift = 7 * (static_cast<double>(i) - 0.5 * static_cast<double>(lines.size() - 1));
    draw_gap_line(drawing, lines[i], shift, x, y);
  }
}

}  // namespace

std::string lr_curve_svg(std::span<const LrCurve> curves, SvgKind kind) {
  std::vector<LrPanel> panels = panels_of(curves);
  const bool single = panels.size() < 2;
  const std::size_t columns = std::clamp<std::size_t>(panels.size(), 1, kColumns);
  const double width = single ? kSingleWidth : kWidth, height = single ? kSingleHeight : kHeight;
  const double cell = width / static_cast<double>(columns);
  Drawing drawing(width, "Final validation loss against peak learning rate");
  const double top = 12 + legend(drawing, {kPanelLeft, 9}, width, names_of(curves));
  double head = 0;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    panels[i].is_wide = cell > 400;
    panels[i].is_first = i % columns == 0;
    head = std::max(head, head_of(panels[i]));
  }
  const double row = head + height + kPanelFoot;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const std::size_t rows_above = i / columns;
    const Point corner{cell * static_cast<double>(i % columns),
                       top + row * static_cast<double>(rows_above)};
    draw_panel(drawing, panels[i], corner, cell, head, height);
  }
  const std::size_t rows = (panels.size() + columns - 1) / columns;
  drawing.height = top + row * static_cast<double>(rows);
  if (const std::vector<GapLine> gaps = gap_lines(panels); !gaps.empty()) {
    const auto base = std::ranges::find_if(curves, &LrCurve::is_baseline);
    draw_gaps(drawing, gaps, {0, drawing.height + 10}, width,
              base == curves.end() ? "the baseline" : base->arm, curves.front().unit);
    drawing.height += kGapHead + kGapHeight + kPanelFoot;
  }
  return kind == SvgKind::inlined ? drawing.inlined() : drawing.standalone(2);
}

}  // namespace difftape::study
