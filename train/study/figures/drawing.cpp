#include "train/study/figures/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

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

std::string coordinates(std::span<const Point> points) {
  std::string text;
  for (const Point& point : points) {
    if (!text.empty()) text += ' ';
    text += number(point.x) + ',' + number(point.y);
  }
  return text;
}

/// The strokes of a shape that is not filled; empty for the others.
std::string strokes(Marker shape, Point at, double r) {
  const auto [x, y] = at;
  std::string across = fmt::format("M{} {}H{}", number(x - r), number(y), number(x + r));
  switch (shape) {
    case Marker::cross:
      return fmt::format("M{} {}L{} {}M{} {}L{} {}", number(x - r), number(y - r), number(x + r),
                         number(y + r), number(x + r), number(y - r), number(x - r), number(y + r));
    case Marker::plus:
      return fmt::format("{}M{} {}V{}", across, number(x), number(y - r), number(y + r));
    case Marker::dash:
      return across;
    default:
      return "";
  }
}

/// Five points at radius 1, between them five at 0.45.
Points star() {
  Points points;
  for (int i = 0; i < 10; ++i) {
    const double angle = i * std::numbers::pi / 5, radius = i % 2 == 0 ? 1 : 0.45;
    points.push_back({radius * std::sin(angle), -radius * std::cos(angle)});
  }
  return points;
}

/// The outline of a shape around (0, 0) with radius 1.
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
  constexpr double kFar = 1e6;  // outside of every picture lies what is too far, or no number
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

void Drawing::polyline(std::span<const Point> points, std::string_view attributes) {
  element("polyline", fmt::format("points=\"{}\"", coordinates(points)), attributes);
}

void Drawing::polygon(std::span<const Point> points, std::string_view attributes) {
  element("polygon", fmt::format("points=\"{}\"", coordinates(points)), attributes);
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
    Points points = outline(shape);
    for (Point& point : points) point = {at.x + r * point.x, at.y + r * point.y};
    element("polygon", fmt::format("points=\"{}\"", coordinates(points)), attributes, title);
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
  std::erase(body, '\n');  // which would be text within the words
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

}  // namespace svg

}  // namespace difftape::study
