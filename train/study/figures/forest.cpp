#include "train/study/figures/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "train/study/compare/claims/output.h"
#include "train/study/figures/drawing.h"
#include "train/system/number.h"
#include "train/system/text_table.h"

namespace difftape::study::svg {

namespace {

constexpr VerdictLook kLooks[] = {{Finding::supported, false, Marker::circle, 1, true},
                                  {Finding::contradicted, false, Marker::diamond, 2, true},
                                  {Finding::equivalent, false, Marker::square, 3, true},
                                  {Finding::supported, true, Marker::circle, 1, false},
                                  {Finding::contradicted, true, Marker::diamond, 2, false},
                                  {Finding::equivalent, true, Marker::square, 3, false},
                                  {Finding::inconclusive, false, Marker::triangle, -1, false},
                                  {Finding::not_testable, false, Marker::dash, -1, false}};
constexpr double kRadius = 5.2, kIcon = 14;

}  // namespace

std::span<const VerdictLook> verdict_looks() { return kLooks; }

const VerdictLook& look_of(const Verdict& verdict) {
  const bool exploratory = verdict.exploratory && verdict.is_decided();
  const auto found = std::ranges::find_if(kLooks, [&](const VerdictLook& look) {
    return look.finding == verdict.finding && look.exploratory == exploratory;
  });
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
  Drawing drawing(kIcon, "");
  drawing.height = kIcon;
  draw_verdict(drawing, look, {kIcon / 2, kIcon / 2});
  return drawing.icon();
}

}  // namespace difftape::study::svg

namespace difftape::study {

namespace {

using namespace svg;

constexpr double kWidth = 900, kLabel = 6, kLeft = 276, kRight = 612, kNumbers = 632;
constexpr double kFont = 12.5, kSmall = 11, kTextLine = 15;
constexpr double kLegendLine = 18, kLegendRight = kWidth - 130, kAxisHeight = 40, kGap = 14;

/// Breaks text into lines of at most `width` units.
std::vector<std::string> lines_of(const std::string& text, double width, double font) {
  const auto most = static_cast<std::size_t>(width / (font * kCharacterWidth));
  std::vector<std::string> lines;
  const std::string all = system::wrapped(text, most, "");
  for (std::size_t begin = 0, end; (end = all.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    lines.push_back(all.substr(begin, end - begin));
  }
  return lines;
}

struct Group {
  std::string unit;
  bool ratio;
  std::vector<const ForestRow*> rows;

  double shown(double effect) const { return ratio ? std::exp(effect) : effect; }
};

std::vector<Group> groups_of(std::span<const ForestRow> rows) {
  std::vector<Group> groups;
  for (const ForestRow& row : rows) {
    auto group = std::ranges::find_if(groups, [&](const Group& each) {
      return each.ratio == row.ratio && (row.ratio || each.unit == row.unit);
    });
    if (group == groups.end()) group = groups.insert(group, {row.unit, row.ratio, {}});
    group->rows.push_back(&row);
  }
  return groups;
}

/// Returns an axis that contains 0 and all effects and margins. Intervals extend it by at most its
/// length on each side.
Axis axis_of(const Group& group) {
  Range range;
  range.add(0);
  for (const ForestRow* row : group.rows) {
    for (const double value : {row->effect, -row->margin, row->margin}) range.add(value);
  }
  const double room = std::max(range.high - range.low, 1e-9);
  const Range core = range;
  for (const ForestRow* row : group.rows) {
    if (std::isfinite(row->low)) range.add(std::max(row->low, core.low - room));
    if (std::isfinite(row->high)) range.add(std::min(row->high, core.high + room));
  }
  return Axis({group.shown(range.low), group.shown(range.high)}, kLeft, kRight, group.ratio)
      .padded(0.05);
}

double inside(double x) { return std::clamp(x, kLeft, kRight); }

struct Placed {
  const ForestRow& row;
  const VerdictLook& look;
  std::vector<std::string> lines;  ///< lines of its label
  double top, height, middle;

  Placed(const ForestRow& placed, double at)
      : row(placed),
        look(look_of(placed.verdict)),
        lines(lines_of(placed.label, kLeft - kLabel - 16, kFont)),
        top(at),
        height(kTextLine * static_cast<double>(std::max<std::size_t>(2, lines.size())) + 14),
        middle(at + 0.5 * height) {}
};

void draw_interval(Drawing& drawing, const Placed& placed, const Group& group, const Axis& axis) {
  const double y = placed.middle;
  drawing.open(stroke(placed.look) + " stroke-width=\"2\" stroke-linecap=\"round\"");
  const double low = axis.at(group.shown(placed.row.low)),
               high = axis.at(group.shown(placed.row.high));
  drawing.line({inside(low), y}, {inside(high), y});
  for (const auto& [end, inward] : {std::pair(low, 6), std::pair(high, -6)}) {
    const double x = inside(end);
    if (std::abs(end - x) < 0.5) {
      drawing.line({x, y - 4}, {x, y + 4});
    } else {  // cut: an arrow
      drawing.line({x, y}, {x + inward, y - 4});
      drawing.line({x, y}, {x + inward, y + 4});
    }
  }
  drawing.close();
}

void draw_words(Drawing& drawing, const Placed& placed) {
  double y = placed.middle - 0.5 * kTextLine * static_cast<double>(placed.lines.size()) + 11.5;
  drawing.open(fmt::format("{} font-size=\"{}\"", kText, kFont));
  for (const std::string& line : placed.lines) {
    drawing.text({kLabel, y}, line);
    y += kTextLine;
  }
  drawing.text({kNumbers, placed.middle - 3}, placed.row.numbers);
  drawing.close();
  draw_verdict(drawing, placed.look, {kNumbers + kRadius, placed.middle + 8});
  drawing.text({kNumbers + 3 * kRadius, placed.middle + 12}, placed.row.verdict.words(),
               fmt::format("{} font-size=\"{}\" font-weight=\"600\"", fill(placed.look), kSmall));
}

void draw_axis(Drawing& drawing, const Group& group, const Axis& axis, double top, double bottom) {
  drawing.open(kFrame);
  drawing.line({kLeft, bottom}, {kRight, bottom});
  for (const double tick : axis.ticks(5)) {
    drawing.line({axis.at(tick), bottom}, {axis.at(tick), bottom + 4});
  }
  drawing.close();
  const double zero = axis.at(group.shown(0));
  drawing.line({zero, top}, {zero, bottom},
               "class=\"reference\" stroke=\"#5b646d\" stroke-width=\"1.2\"");
  drawing.open(fmt::format("{} font-size=\"{}\"", kMuted, kSmall));
  for (const double tick : axis.ticks(5)) {
    drawing.text(
        {axis.at(tick), bottom + 16},
        (group.ratio ? "×" : "") + system::short_number(std::abs(tick) < 1e-12 ? 0 : tick, 3),
        "text-anchor=\"middle\"");
  }
  drawing.text({kLeft, bottom + 32}, "← lower");
  drawing.text({kRight, bottom + 32}, "higher →", "text-anchor=\"end\"");
  drawing.text({0.5 * (kLeft + kRight), bottom + 32}, group.ratio ? "factor" : group.unit,
               "text-anchor=\"middle\"");
  drawing.close();
}

/// Draws a group of rows that share an axis. Returns its lower end.
double draw_group(Drawing& drawing, const Group& group, double top) {
  const Axis axis = axis_of(group);
  const auto at = [&](double effect) { return inside(axis.at(group.shown(effect))); };
  std::vector<Placed> rows;
  double bottom = top;
  for (const ForestRow* row : group.rows) bottom += rows.emplace_back(*row, bottom).height;
  for (const Placed& each : rows) {
    const double margin = each.row.margin;
    if (!std::isfinite(margin)) continue;
    drawing.rect({at(-margin), each.top}, at(margin) - at(-margin), each.height,
                 "class=\"band\" fill=\"#e3ebf2\"",
                 fmt::format("equivalent within this {}: {}", group.ratio ? "factor" : "margin",
                             system::short_number(group.shown(margin), 3)));
  }
  drawing.open(kGrid);
  for (const Placed& each : rows) drawing.line({0, each.top}, {kWidth, each.top});
  drawing.close();
  draw_axis(drawing, group, axis, top, bottom);
  for (const Placed& each : rows) {
    const ForestRow& row = each.row;
    if (!std::isnan(row.low) && !std::isnan(row.high)) draw_interval(drawing, each, group, axis);
    if (std::isfinite(row.effect)) {
      draw_verdict(drawing, each.look, {at(row.effect), each.middle},
                   fmt::format("{}: {}, {}", row.label, row.verdict.words(), row.numbers));
    }
    draw_words(drawing, each);
  }
  return bottom + kAxisHeight;
}

/// Draws the legend of the verdicts and the margin band, in as many lines as needed. Returns its
/// height.
double draw_legend(Drawing& drawing, std::span<const ForestRow> rows) {
  Point at{kLabel + 6, 14};
  const auto entry = [&](std::string_view text, const auto& draw) {
    const double width = 34 + kSmall * kCharacterWidth * static_cast<double>(text.size());
    if (at.x + width > kLegendRight) at = {kLabel + 6, at.y + kLegendLine};
    draw();
    drawing.text({at.x + 11, at.y + 4}, text, fmt::format("{} font-size=\"{}\"", kText, kSmall));
    at.x += width;
  };
  const auto any = [&](const auto& has) { return std::ranges::any_of(rows, has); };
  for (const VerdictLook& look : verdict_looks()) {
    if (any([&](const ForestRow& row) { return &look_of(row.verdict) == &look; }))
      entry(Verdict{look.finding, look.exploratory}.words(),
            [&] { draw_verdict(drawing, look, at); });
  }
  if (any([](const ForestRow& row) { return std::isfinite(row.margin); })) {
    entry("margin of equivalence", [&] {
      drawing.rect({at.x - 6, at.y - 6}, 12, 12, "class=\"band\" fill=\"#e3ebf2\"");
    });
  }
  drawing.text({kWidth - kLabel, 18}, "bars: 95 % intervals",
               fmt::format("{} font-size=\"{}\" text-anchor=\"end\"", kMuted, kSmall));
  return at.y + 16;
}

}  // namespace

std::string forest_svg(std::span<const ForestRow> rows, SvgKind kind) {
  if (rows.empty()) return "";
  Drawing drawing(kWidth, "Effects with 95 % intervals and verdicts");
  double bottom = draw_legend(drawing, rows) - kGap;
  for (const Group& group : groups_of(rows)) bottom = draw_group(drawing, group, bottom + kGap);
  drawing.height = bottom + 4;
  return kind == SvgKind::inlined ? drawing.inlined() : drawing.standalone(1);
}

std::vector<ForestRow> forest_rows(const JudgedClaims& claims) {
  std::vector<ForestRow> rows;
  for (const ClaimResult& result : claims.results) {
    if (!result.verdict.is_tested()) continue;
    const Claim& claim = *result.claim;
    ForestRow& row = rows.emplace_back();
    row.label = claim.statement;
    row.verdict = result.verdict;
    row.effect = result.measured.paired.difference.mean;
    row.low = result.measured.paired.difference.low();
    row.high = result.measured.paired.difference.high();
    row.margin = claim.margin_on_axis();
    row.ratio = claim.metric->scale == Scale::ratio;
    row.numbers = fmt::format("{}, {}", difference_text(result), seeds_text(result.measured));
    if (!row.ratio) row.unit = unit_of(*claim.metric, claims.data);
    if (claim.metric->scale == Scale::root) row.unit = "square roots of counts";
    if (!row.ratio && claim.over == Over::slope) row.unit += " per decade of parameters";
  }
  return rows;
}

}  // namespace difftape::study
