#include "train/study/figures/forest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "train/study/figures/axis.h"
#include "train/system/text_table.h"

namespace difftape::study {

namespace {

using namespace svg;

constexpr double kWidth = 900, kLabel = 6, kLeft = 276, kRight = 612, kNumbers = 632;
constexpr double kFont = 12.5, kSmall = 11, kTextLine = 15;
constexpr double kRadius = 5.2;  ///< of the mark of a verdict
constexpr double kLegendLine = 18, kLegendRight = kWidth - 130, kAxisHeight = 40, kGap = 14;

/// A text in lines of at most `width` units.
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

double row_height(const ForestRow& row) {
  const std::size_t lines =
      std::max<std::size_t>(2, lines_of(row.label, kLeft - kLabel - 16, kFont).size());
  return static_cast<double>(lines) * kTextLine + 14;
}

/// Rows that share an axis.
struct Group {
  std::string unit;
  bool ratio;
  std::vector<const ForestRow*> rows;
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

/// An effect on the axis of its group.
double shown(const Group& group, double effect) { return group.ratio ? std::exp(effect) : effect; }

/// From the smallest to the largest effect, margin and published value with 0 among them; intervals
/// as far as they reach at most the same length beyond.
Axis axis_of(const Group& group) {
  Range range;
  range.add(0);
  for (const ForestRow* row : group.rows) {
    for (const double value :
         {row->effect, -row->margin, row->margin, row->published_low, row->published_high}) {
      range.add(value);
    }
  }
  const double room = std::max(range.high - range.low, 1e-9);
  const Range core = range;
  for (const ForestRow* row : group.rows) {
    if (std::isfinite(row->low)) range.add(std::max(row->low, core.low - room));
    if (std::isfinite(row->high)) range.add(std::min(row->high, core.high + room));
  }
  return Axis({shown(group, range.low), shown(group, range.high)}, kLeft, kRight, group.ratio)
      .padded(0.05);
}

/// A published range.
void draw_span(Drawing& drawing, double from, double to, double y) {
  drawing.open("class=\"published\" stroke=\"#1c2126\" stroke-width=\"1.4\"");
  for (const double end : {from, to}) drawing.line({end, y - 4}, {end, y + 4});
  drawing.line({from, y}, {to, y});
  drawing.close();
}

class DrawnRow {
 public:
  DrawnRow(Drawing& drawing, const Group& group, const Axis& axis, const ForestRow& row, double top)
      : drawing_(drawing),
        group_(group),
        axis_(axis),
        row_(row),
        top_(top),
        height_(row_height(row)),
        middle_(top + 0.5 * height_) {}

  /// What lies behind the zero line.
  void draw_margin() const {
    if (!std::isfinite(row_.margin)) return;
    const double from = at(-row_.margin), to = at(row_.margin);
    drawing_.rect({from, top_}, to - from, height_, "class=\"band\" fill=\"#e3ebf2\"",
                  fmt::format("equal within this {}: {}", group_.ratio ? "factor" : "margin",
                              short_number(shown(group_, row_.margin), 3)));
  }

  void draw() const {
    const VerdictLook& look = look_of(row_.verdict);
    draw_published();
    if (!std::isnan(row_.low) && !std::isnan(row_.high)) draw_interval(look);
    if (std::isfinite(row_.effect)) {
      draw_verdict(drawing_, look, {at(row_.effect), middle_},
                   fmt::format("{}: {}, {}", row_.label, row_.verdict, row_.numbers));
    }
    draw_words(look);
  }

 private:
  double at(double effect) const {
    return std::clamp(axis_.at(shown(group_, effect)), kLeft, kRight);
  }

  void draw_published() const {
    if (!std::isfinite(row_.published_low) || !std::isfinite(row_.published_high)) return;
    draw_span(drawing_, at(row_.published_low), at(row_.published_high), middle_ + 11);
  }

  void draw_interval(const VerdictLook& look) const {
    drawing_.open(stroke(look) + " stroke-width=\"2\" stroke-linecap=\"round\"");
    const double low = at(row_.low), high = at(row_.high);
    drawing_.line({low, middle_}, {high, middle_});
    const auto end = [&](double x, double value, double inward) {
      if (std::abs(axis_.at(shown(group_, value)) - x) < 0.5) {
        drawing_.line({x, middle_ - 4}, {x, middle_ + 4});
      } else {  // cut: an arrow
        drawing_.line({x, middle_}, {x + 6 * inward, middle_ - 4});
        drawing_.line({x, middle_}, {x + 6 * inward, middle_ + 4});
      }
    };
    end(low, row_.low, 1);
    end(high, row_.high, -1);
    drawing_.close();
  }

  void draw_words(const VerdictLook& look) const {
    const auto lines = lines_of(row_.label, kLeft - kLabel - 16, kFont);
    double y = middle_ - 0.5 * kTextLine * static_cast<double>(lines.size()) + 11.5;
    drawing_.open(fmt::format("{} font-size=\"{}\"", kText, kFont));
    for (const std::string& line : lines) {
      drawing_.text({kLabel, y}, line);
      y += kTextLine;
    }
    drawing_.text({kNumbers, middle_ - 3}, row_.numbers);
    drawing_.close();
    draw_verdict(drawing_, look, {kNumbers + kRadius, middle_ + 8});
    drawing_.text({kNumbers + 3 * kRadius, middle_ + 12}, row_.verdict,
                  fmt::format("{} font-size=\"{}\" font-weight=\"600\"", fill(look), kSmall));
  }

  Drawing& drawing_;
  const Group& group_;
  const Axis& axis_;
  const ForestRow& row_;
  double top_, height_, middle_;
};

void draw_axis(Drawing& drawing, const Group& group, const Axis& axis, double top, double bottom) {
  drawing.open(kFrame);
  drawing.line({kLeft, bottom}, {kRight, bottom});
  for (const double tick : axis.ticks(5)) {
    drawing.line({axis.at(tick), bottom}, {axis.at(tick), bottom + 4});
  }
  drawing.close();
  const double zero = axis.at(shown(group, 0));
  drawing.line({zero, top}, {zero, bottom},
               "class=\"reference\" stroke=\"#5b646d\" stroke-width=\"1.2\"");
  drawing.open(fmt::format("{} font-size=\"{}\"", kMuted, kSmall));
  for (const double tick : axis.ticks(5)) {
    drawing.text({axis.at(tick), bottom + 16},
                 (group.ratio ? "×" : "") + short_number(std::abs(tick) < 1e-12 ? 0 : tick, 3),
                 "text-anchor=\"middle\"");
  }
  drawing.text({kLeft, bottom + 32}, "← lower");
  drawing.text({kRight, bottom + 32}, "higher →", "text-anchor=\"end\"");
  drawing.text({0.5 * (kLeft + kRight), bottom + 32}, group.ratio ? "factor" : group.unit,
               "text-anchor=\"middle\"");
  drawing.close();
}

double height_of(const Group& group) {
  double height = 0;
  for (const ForestRow* row : group.rows) height += row_height(*row);
  return height;
}

void draw_group(Drawing& drawing, const Group& group, double top) {
  const Axis axis = axis_of(group);
  const double bottom = top + height_of(group);
  std::vector<DrawnRow> rows;
  double y = top;
  for (const ForestRow* row : group.rows) {
    rows.emplace_back(drawing, group, axis, *row, y);
    y += row_height(*row);
  }
  for (const DrawnRow& row : rows) row.draw_margin();
  drawing.open(kGrid);
  y = top;
  for (const ForestRow* row : group.rows) {
    drawing.line({0, y}, {kWidth, y});
    y += row_height(*row);
  }
  drawing.close();
  draw_axis(drawing, group, axis, top, bottom);
  for (const DrawnRow& row : rows) row.draw();
}

/// The verdicts that there are, then what the band and the span are, in as many lines as they need;
/// returns their height. Without a drawing it only measures.
double draw_legend(Drawing* drawing, std::span<const ForestRow> rows) {
  Point at{kLabel + 6, 14};
  const auto entry = [&](const char* text, const auto& draw) {
    const double width =
        34 + kSmall * kCharacterWidth * static_cast<double>(std::string_view(text).size());
    if (at.x + width > kLegendRight) at = {kLabel + 6, at.y + kLegendLine};
    if (drawing != nullptr) {
      draw(*drawing, at);
      drawing->text({at.x + 11, at.y + 4}, text, fmt::format("{} font-size=\"{}\"", kText, kSmall));
    }
    at.x += width;
  };
  for (const VerdictLook& look : verdict_looks()) {
    const bool used = std::ranges::any_of(
        rows, [&](const ForestRow& row) { return &look_of(row.verdict) == &look; });
    if (!used) continue;
    entry(look.verdict, [&](Drawing& to, Point mark) { draw_verdict(to, look, mark); });
  }
  const auto any = [&](double ForestRow::*member) {
    return std::ranges::any_of(rows,
                               [&](const ForestRow& row) { return std::isfinite(row.*member); });
  };
  if (any(&ForestRow::margin)) {
    entry("margin of equivalence", [](Drawing& to, Point mark) {
      to.rect({mark.x - 6, mark.y - 6}, 12, 12, "class=\"band\" fill=\"#e3ebf2\"");
    });
  }
  if (any(&ForestRow::published_low)) {
    entry("published",
          [](Drawing& to, Point mark) { draw_span(to, mark.x - 6, mark.x + 6, mark.y); });
  }
  if (drawing != nullptr) {
    drawing->text({kWidth - kLabel, 18}, "bars: 95 % intervals",
                  fmt::format("{} font-size=\"{}\" text-anchor=\"end\"", kMuted, kSmall));
  }
  return at.y + 16;
}

}  // namespace

std::string forest_svg(std::span<const ForestRow> rows, SvgKind kind) {
  if (rows.empty()) return "";
  const std::vector<Group> groups = groups_of(rows);
  const double legend = draw_legend(nullptr, rows);
  double height = legend;
  for (const Group& group : groups) height += height_of(group) + kAxisHeight + kGap;
  Drawing drawing(kWidth, height - kGap + 4, "Effects with 95 % intervals and verdicts");
  draw_legend(&drawing, rows);
  double top = legend;
  for (const Group& group : groups) {
    draw_group(drawing, group, top);
    top += height_of(group) + kAxisHeight + kGap;
  }
  return kind == SvgKind::inlined ? drawing.inlined() : drawing.standalone(1);
}

}  // namespace difftape::study
