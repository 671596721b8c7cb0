#include "train/study/figures/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "train/system/number.h"

namespace difftape::study {

std::string escape_html(std::string_view text) {
  constexpr std::string_view kSpecial = "&<>\"'";
  constexpr const char* kEntities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
  std::string html;
  for (const char c : text) {
    const std::size_t special = kSpecial.find(c);
    html += special == kSpecial.npos ? std::string(1, c) : kEntities[special];
  }
  return html;
}

namespace svg {

namespace {

constexpr std::string_view kFont =
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', sans-serif";

/// Returns the path of a stroked shape; empty for filled shapes.
std::string strokes(Marker shape, Point at, double r) {
  const auto [x, y] = at;
  switch (shape) {
    case Marker::cross:
      return fmt::format("M{} {}L{} {}M{} {}L{} {}", number(x - r), number(y - r), number(x + r),
                         number(y + r), number(x + r), number(y - r), number(x - r), number(y + r));
    case Marker::dash:
      return fmt::format("M{} {}H{}", number(x - r), number(y), number(x + r));
    default:
      return "";
  }
}

Points star() {
  Points points;
  for (int i = 0; i < 10; ++i) {
    const double angle = i * std::numbers::pi / 5, radius = i % 2 == 0 ? 1 : 0.45;
    points.push_back({radius * std::sin(angle), -radius * std::cos(angle)});
  }
  return points;
}

Points outline(Marker shape) {
  switch (shape) {
    case Marker::square:
      return {{-0.85, -0.85}, {0.85, -0.85}, {0.85, 0.85}, {-0.85, 0.85}};
    case Marker::triangle:
      return {{0, -1.1}, {1, 0.8}, {-1, 0.8}};
    case Marker::down:
      return {{0, 1.1}, {1, -0.8}, {-1, -0.8}};
    case Marker::star:
      return star();
    default:
      return {{0, -1.2}, {1.2, 0}, {0, 1.2}, {-1.2, 0}};
  }
}

constexpr const char* kArms[kArmColors] = {"#000000", "#0072b2", "#d55e00", "#009e73",
                                           "#cc79a7", "#e69f00", "#56b4e9", "#c9b800"};
constexpr const char* kDashes[] = {"", " stroke-dasharray=\"7 3\"", " stroke-dasharray=\"2 2\"",
                                   " stroke-dasharray=\"8 2 2 2\""};

}  // namespace

std::string number(double value) {
  constexpr double kFar =
      1e6;  // values that are too large or not finite lie outside of every picture
  value = std::isnan(value) ? -kFar : std::clamp(value, -kFar, kFar);
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string escape(std::string_view text) {
  std::string allowed;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x20 || c == '\t' || c == '\n') allowed += c;
  }
  return escape_html(allowed);
}

std::string shortened(std::string_view text, std::size_t characters) {
  std::size_t seen = 0, last = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;  // inside a character
    if (seen == characters) return std::string(text.substr(0, last)) + "…";
    if (seen + 1 == characters) last = i;
    ++seen;
  }
  return std::string(text);
}

Drawing::Drawing(double width, std::string_view label) : width_(width), label_(escape(label)) {}

void Drawing::element(std::string_view name, std::string_view geometry, std::string_view attributes,
                      std::string_view title) {
  body_ += fmt::format("<{} {}{}{}", name, geometry, attributes.empty() ? "" : " ", attributes);
  body_ += title.empty() ? "/>" : fmt::format("><title>{}</title></{}>", escape(title), name);
  body_ += '\n';
}

void Drawing::open(std::string_view attributes) { body_ += fmt::format("<g {}>\n", attributes); }

void Drawing::close() { body_ += "</g>\n"; }

void Drawing::line(Point from, Point to, std::string_view attributes) {
  element("line",
          fmt::format("x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"", number(from.x), number(from.y),
                      number(to.x), number(to.y)),
          attributes);
}

void Drawing::points(const char* shape, std::span<const Point> points, std::string_view attributes,
                     std::string_view title) {
  std::string text;
  for (const Point& each : points)
    text += fmt::format("{}{},{}", text.empty() ? "" : " ", number(each.x), number(each.y));
  element(shape, fmt::format("points=\"{}\"", text), attributes, title);
}

void Drawing::rect(Point corner, double width, double tall, std::string_view attributes,
                   std::string_view title) {
  element("rect",
          fmt::format("x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", number(corner.x),
                      number(corner.y), number(width), number(tall)),
          attributes, title);
}

void Drawing::text(Point at, std::string_view text, std::string_view attributes) {
  body_ += fmt::format("<text x=\"{}\" y=\"{}\"{}{}>{}</text>\n", number(at.x), number(at.y),
                       attributes.empty() ? "" : " ", attributes, escape(text));
}

void Drawing::marker(Marker shape, Point at, double radius, std::string_view attributes,
                     std::string_view title) {
  const double r = radius;
  if (shape == Marker::circle) {
    element("circle",
            fmt::format("cx=\"{}\" cy=\"{}\" r=\"{}\"", number(at.x), number(at.y), number(r)),
            attributes, title);
  } else if (const std::string path = strokes(shape, at, r); !path.empty()) {
    element("path", "d=\"" + path + "\"", attributes, title);
  } else {
    Points shifted = outline(shape);
    for (Point& point : shifted) point = {at.x + r * point.x, at.y + r * point.y};
    points("polygon", shifted, attributes, title);
  }
}

std::string Drawing::inlined() const {
  return fmt::format(
      "<svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" "
      "font-family=\"{}\" font-size=\"10\">\n{}</svg>",
      number(width_), number(height), label_, kFont, body_);
}

std::string Drawing::icon() const {
  std::string body = body_;
  std::erase(body, '\n');  // newlines would show as spaces in the text
  return fmt::format("<svg class=\"icon\" viewBox=\"0 0 {} {}\" aria-hidden=\"true\">{}</svg>",
                     number(width_), number(height), body);
}

std::string Drawing::standalone(double scale) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\" "
      "role=\"img\" aria-label=\"{}\" font-family=\"{}\" font-size=\"10\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}</svg>\n",
      number(scale * width_), number(scale * height), number(width_), number(height), label_, kFont,
      body_);
}

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

namespace {

constexpr double kLegendLine = 14;
constexpr double kCharacter = 10 * kCharacterWidth;
constexpr std::size_t kLongestName = 40;

}  // namespace

bool fits_axis(double value) {
  return std::abs(value) <= 1e300;  // so that differences and margins stay finite
}

void Range::add(double value) {
  if (!fits_axis(value)) return;
  low = std::min(low, value);
  high = std::max(high, value);
}

Axis::Axis(Range values, double from, double to, bool log) : from_(from), to_(to), log_(log) {
  if (values.empty()) values = {0, 1};
  if (values.low <= 0) log_ = false;
  low_ = log_ ? std::log10(values.low) : values.low;
  high_ = log_ ? std::log10(values.high) : values.high;
  if (high_ - low_ < 1e-12 * std::max(1.0, std::abs(low_))) {
    const double margin = log_ ? 0.3 : std::max(0.5 * std::abs(low_), 1e-3);
    low_ -= margin;
    high_ += margin;
  }
}

double Axis::place(double value) const { return log_ ? std::log10(value) : value; }

double Axis::at(double value) const {
  return from_ + (to_ - from_) * (place(value) - low_) / (high_ - low_);
}

Axis Axis::padded(double margin) const {
  Axis wider = *this;
  wider.low_ = low_ - margin * (high_ - low_);
  wider.high_ = high_ + margin * (high_ - low_);
  return wider;
}

std::vector<double> Axis::ticks(int wanted) const {
  std::vector<double> ticks;
  if (log_ && high_ - low_ > 0.8) {
    // A few decades get ticks at 2 and 5, too; for many decades some are skipped.
    const double decades = high_ - low_;
    const int stride = std::max(1, static_cast<int>(std::ceil(decades / wanted)));
    for (int power = static_cast<int>(std::floor(low_)); power <= high_; power += stride) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        if (factor > 1 && decades > 0.5 * wanted) continue;
        const double place = power + std::log10(factor);
        if (place >= low_ && place <= high_) ticks.push_back(std::pow(10.0, place));
      }
    }
    return ticks;
  }
  const double low = log_ ? std::pow(10.0, low_) : low_,
               high = log_ ? std::pow(10.0, high_) : high_;
  const double rough = (high - low) / wanted, power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough) step = factor * power;
  }
  for (double k = std::ceil(low / step); k * step <= high * (1 + 1e-12); ++k) {
    ticks.push_back(k * step);
  }
  return ticks;
}

void draw_axes(Drawing& drawing, const Axis& x, const Axis& y, const Labels& labels,
               std::span<const double> x_ticks) {
  const std::vector<double> round = x.ticks(6), rows = y.ticks(y.log() ? 8 : 5);
  if (x_ticks.empty()) x_ticks = round;
  drawing.open(kGrid);
  for (const double tick : rows) drawing.line({x.from(), y.at(tick)}, {x.to(), y.at(tick)});
  drawing.close();
  drawing.open(kFrame);
  drawing.line({x.from(), y.from()}, {x.to(), y.from()});
  for (const double tick : x_ticks)
    drawing.line({x.at(tick), y.from()}, {x.at(tick), y.from() + 3});
  drawing.close();
  drawing.open(kMuted);
  for (const double tick : rows) {
    drawing.text({x.from() - 5, y.at(tick) + 3.5}, system::short_number(tick),
                 "text-anchor=\"end\"");
  }
  for (const double tick : x_ticks) {
    drawing.text({x.at(tick), y.from() + 13}, system::short_number(tick), "text-anchor=\"middle\"");
  }
  drawing.text({0.5 * (x.from() + x.to()), y.from() + 27}, labels.x, "text-anchor=\"middle\"");
  const Point middle{x.from() - 39, 0.5 * (y.from() + y.to())};
  if (!labels.y.empty()) {
    drawing.text(middle, labels.y,
                 fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 {} {})\"",
                             number(middle.x), number(middle.y)));
  }
  drawing.close();
}

double legend(Drawing& drawing, Point at, double right, std::span<const std::string> names) {
  double x = at.x, y = at.y;
  for (std::size_t arm = 0; arm < names.size(); ++arm) {
    const std::string label = shortened(names[arm], kLongestName);
    const auto characters = std::count_if(label.begin(), label.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    });
    const double width = 30 + kCharacter * static_cast<double>(characters);
    if (x > at.x && x + width > right) x = at.x, y += kLegendLine;
    drawing.line({x, y}, {x + 14, y}, stroke(arm) + " stroke-width=\"1.6\"");
    drawing.marker(marker(arm), {x + 7, y}, 2.8, fill(arm));
    drawing.text({x + 18, y + 3.5}, label, kText);
    x += width;
  }
  return y - at.y + kLegendLine;
}

}  // namespace svg

}  // namespace difftape::study
