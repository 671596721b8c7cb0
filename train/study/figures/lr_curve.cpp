#include "train/study/figures/lr_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "train/study/figures/lr_panel.h"

namespace difftape::study {

namespace {

using namespace svg;

constexpr double kSingleWidth = 440, kSingleHeight = 230;  ///< a single panel
constexpr double kWidth = 960, kHeight = 200;              ///< several, in rows of at most four
constexpr std::size_t kColumns = 4;
constexpr double kGapHeight = 130, kGapHead = 34;

/// "0.067 M parameters".
std::string size_text(std::int64_t parameters) {
  const auto count = static_cast<double>(parameters);
  return count < 1e3   ? fmt::format("{} parameters", parameters)
         : count < 1e9 ? fmt::format("{:.2g} M parameters", count / 1e6)
                       : fmt::format("{:.2g} B parameters", count / 1e9);
}

bool are_of_one_panel(const LrCurve& a, const LrCurve& b) {
  return a.task == b.task && a.d_model == b.d_model;
}

/// The arm without its size and task, where that tells it from the others of its panel.
std::string name_of(std::span<const LrCurve> curves, const LrCurve& curve) {
  const auto named = std::ranges::count_if(curves, [&](const LrCurve& other) {
    return are_of_one_panel(other, curve) && other.name == curve.name;
  });
  return named == 1 && !curve.name.empty() ? curve.name : curve.arm;
}

/// The names of all arms, in the order of their colours.
std::vector<std::string> names_of(std::span<const LrCurve> curves) {
  std::vector<std::string> names;
  for (const LrCurve& curve : curves) {
    const std::string name = name_of(curves, curve);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
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
    const auto color = std::ranges::find(names, name_of(curves, curve)) - names.begin();
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
    if (sizes > 1 && !first.task_words.empty()) panel.title += ", " + first.task_words;
  }
  return panels;
}

/// The gaps of one arm at all sizes.
struct GapLine {
  struct Gap {
    double millions;  ///< of parameters
    const LrGap* gap;
  };
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
  const auto at = [&](const GapLine::Gap& gap) {
    return Point{x.at(gap.millions) + shift, y.at(gap.gap->difference.difference.mean)};
  };
  Points means;
  for (const GapLine::Gap& gap : line.gaps) means.push_back(at(gap));
  drawing.polyline(means,
                   stroke(line.arm) + " stroke-width=\"1\" stroke-opacity=\"0.5\" fill=\"none\"");
  for (const GapLine::Gap& gap : line.gaps) {
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

/// To three significant digits, for a tick.
double rounded(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  return unit * std::round(value / unit);
}

/// The strip of gaps, its top left at `corner`.
void draw_gaps(Drawing& drawing, const std::vector<GapLine>& lines, Point corner, double width,
               const std::string& baseline) {
  Range sizes, gaps;
  gaps.add(0);
  std::vector<double> ticks;
  for (const GapLine& line : lines) {
    for (const GapLine::Gap& gap : line.gaps) {
      const stats::Interval& interval = gap.gap->difference.difference;
      sizes.add(gap.millions);
      const double tick = rounded(gap.millions);
      if (std::ranges::find(ticks, tick) == ticks.end()) ticks.push_back(tick);
      for (const double value : {interval.mean, interval.low(), interval.high()}) gaps.add(value);
    }
  }
  const double left = corner.x + kPanelLeft, right = corner.x + width - kPanelRight;
  const double top = corner.y + kGapHead - 10, bottom = top + kGapHeight;
  const Axis x = Axis(sizes, left, right, true).padded(0.08);
  const Axis y = Axis(gaps, bottom, top, false).padded(0.08);
  drawing.text({left, corner.y + 11},
               fmt::format("Gap to {} at each arm's own lr*, nats per token", baseline),
               std::string(kText) + " font-weight=\"600\"");
  draw_axes(drawing, x, y, {"parameters, millions", "gap"}, ticks);
  drawing.line({left, y.at(0)}, {right, y.at(0)},
               "class=\"reference\" stroke=\"#5b646d\" stroke-width=\"1\"");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double shift = 7 * (static_cast<double>(i) - 0.5 * static_cast<double>(lines.size() - 1));
    draw_gap_line(drawing, lines[i], shift, x, y);
  }
}

std::string baseline_name(std::span<const LrCurve> curves) {
  const auto base = std::ranges::find_if(curves, &LrCurve::is_baseline);
  return base == curves.end() ? "the baseline" : name_of(curves, *base);
}

}  // namespace

std::string lr_curve_svg(std::span<const LrCurve> curves, SvgKind kind) {
  std::vector<LrPanel> panels = panels_of(curves);
  const bool single = panels.size() < 2;
  const std::size_t columns = std::clamp<std::size_t>(panels.size(), 1, kColumns);
  const double width = single ? kSingleWidth : kWidth, height = single ? kSingleHeight : kHeight;
  const double cell = width / static_cast<double>(columns);
  std::vector<Entry> entries;
  for (const std::string& name : names_of(curves)) entries.push_back({name, entries.size()});
  const double legend_height = 12 + legend(nullptr, {kPanelLeft, 9}, width, entries);
  double head = 0;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    panels[i].is_wide = cell > 400;
    panels[i].is_first = i % columns == 0;
    head = std::max(head, panels[i].head());
  }
  const std::vector<GapLine> gaps = gap_lines(panels);
  const double row = head + height + kPanelFoot;
  const double rows = static_cast<double>((panels.size() + columns - 1) / columns);
  const double strip = legend_height + rows * row + 10;
  const double total = gaps.empty() ? strip - 10 : strip + kGapHead - 10 + kGapHeight + kPanelFoot;
  Drawing drawing(width, total, "Final validation loss against peak learning rate");
  legend(&drawing, {kPanelLeft, 9}, width, entries);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const Point corner{cell * static_cast<double>(i % columns),
                       legend_height + row * static_cast<double>(i / columns)};
    panels[i].draw(drawing, corner, cell, head, height);
  }
  if (!gaps.empty()) draw_gaps(drawing, gaps, {0, strip}, width, baseline_name(curves));
  return kind == SvgKind::inlined ? drawing.inlined() : drawing.standalone(2);
}

}  // namespace difftape::study
