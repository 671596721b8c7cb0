#pragma once
// SVG elements and their colors. Elements are written one after another. Positions are in user
// units, y downwards. `attributes` are written as they are; names and titles are escaped.
//
// Colors are presentation attributes, which stand alone in a file, next to a class by which the
// page replaces them for a dark screen (page/css/figures.css).

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace difftape::study {

/// Text as HTML text or as the value of a quoted attribute.
std::string escape_html(std::string_view text);

/// A picture in the page, which gives it its colors, or a file of its own on white.
enum class SvgKind { inlined, standalone };

}  // namespace difftape::study

namespace difftape::study::svg {

struct Point {
  double x, y;
};
using Points = std::vector<Point>;

/// Shapes that tell arms and verdicts apart without their color.
enum class Marker { circle, square, triangle, diamond, down, star, cross, plus, dash };

/// At most two decimals, "12.5"; what is finer than a hundredth of a unit is not seen.
std::string number(double value);
/// Text as XML text or as the value of a quoted attribute, without the characters XML forbids.
std::string escape(std::string_view text);
/// At most `characters` (at least 1) characters of UTF-8, the last of them an ellipsis if cut.
std::string shortened(std::string_view text, std::size_t characters);

class Drawing {
 public:
  /// `label` is what a screen reader says of the picture.
  Drawing(double width, std::string_view label);

  double height = 0;  ///< may be set when all is drawn

  void open(std::string_view attributes);  ///< a group, until close()
  void close();
  void line(Point from, Point to, std::string_view attributes = "");
  void polyline(std::span<const Point> line, std::string_view attributes = "") {
    points("polyline", line, attributes);
  }
  void polygon(std::span<const Point> line, std::string_view attributes = "") {
    points("polygon", line, attributes);
  }
  void rect(Point corner, double width, double tall, std::string_view attributes = "",
            std::string_view title = "");
  void text(Point at, std::string_view text, std::string_view attributes = "");
  /// `cross`, `plus` and `dash` are strokes, the others are filled.
  void marker(Marker shape, Point at, double radius, std::string_view attributes = "",
              std::string_view title = "");

  /// The element for a page, as wide as its container lets it be.
  std::string inlined() const;
  /// An element of the size of letters, for a page; the words beside it say the same.
  std::string icon() const;
  /// A file of its own on white, `scale` pixels a unit.
  std::string standalone(double scale) const;

 private:
  void points(const char* shape, std::span<const Point> points, std::string_view attributes,
              std::string_view title = "");
  void element(std::string_view name, std::string_view geometry, std::string_view attributes,
               std::string_view title = "");

  double width_;
  std::string label_, body_;
};

/// Colors of arms: those of Okabe and Ito (2008), in an order that keeps neighbors far apart.
inline constexpr std::size_t kArmColors = 8;
/// `class="stroke-1" stroke="#0072b2"`; from the ninth arm on the colors repeat, dashed.
std::string stroke(std::size_t arm);
/// `class="fill-1" fill="#0072b2"`.
std::string fill(std::size_t arm);
Marker marker(std::size_t arm);

/// About the width of a character, in units of its font's size.
inline constexpr double kCharacterWidth = 0.54;

/// Attributes of what is not data.
inline constexpr const char* kText = "class=\"ink\" fill=\"#1c2126\"";
inline constexpr const char* kMuted = "class=\"soft\" fill=\"#5b646d\"";
inline constexpr const char* kGrid = "class=\"grid\" stroke=\"#e6e9ec\" stroke-width=\"0.75\"";
inline constexpr const char* kFrame = "class=\"frame\" stroke=\"#aab2ba\" stroke-width=\"0.75\"";

/// Whether a value is a number that an axis can hold.
bool fits_axis(double value);

/// The smallest and the largest of the values it has seen that fit.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value);
  bool empty() const { return low > high; }
};

/// "0.03", "3e-3", "120000", "1.2e6": at most `digits` significant digits.
std::string short_number(double value, int digits = 4);

/// Maps values to positions, on a logarithmic scale if asked. An empty range, or one of a single
/// value, is widened; a logarithmic one needs values above 0 and is linear without.
class Axis {
 public:
  Axis(Range values, double from, double to, bool log);

  double at(double value) const;
  double from() const { return from_; }
  double to() const { return to_; }
  bool log() const { return log_; }
  /// Round values within the range, about `wanted` of them: 1, 2 or 5 times a power of ten.
  std::vector<double> ticks(int wanted) const;
  /// The same axis with `share` of its length left free at both ends.
  Axis padded(double share) const;

 private:
  double place(double value) const;

  double low_, high_, from_, to_;  ///< low and high as logarithms if log_
  bool log_;
};

struct Labels {
  std::string x, y;
};

/// Grid, frame, tick labels and names of two axes; x runs along the bottom, y along the left, where
/// its labels take 48 units.
void draw_axes(Drawing& drawing, const Axis& x, const Axis& y, const Labels& labels,
               std::span<const double> x_ticks = {});

/// Draws the names of arms in their colors from left to right, in as many lines as `at` ...
/// `right` needs, and returns the height used.
double legend(Drawing& drawing, Point at, double right, std::span<const std::string> names);

}  // namespace difftape::study::svg
