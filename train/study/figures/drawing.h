#pragma once
// Writes SVG elements one after another. Positions are in user units, y downwards. `attributes` are
// written verbatim; names and titles are escaped.
//
// Colors are presentation attributes, which suffice in a standalone file. A class next to them lets
// the page replace them in dark mode (page/css/figures.css).

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace difftape::study {

/// Escapes a string for HTML text or for a quoted attribute.
std::string escape_html(std::string_view text);

/// A picture inlined in the page, which sets its colors, or a standalone file on white.
enum class SvgKind { inlined, standalone };

}  // namespace difftape::study

namespace difftape::study::svg {

struct Point {
  double x, y;
};
using Points = std::vector<Point>;

/// Shapes that distinguish arms and verdicts without color.
enum class Marker { circle, square, triangle, diamond, down, star, cross, dash };

/// Formats a position with at most two decimals, "12.5"; finer differences are invisible.
std::string number(double value);
/// Escapes a string for XML text or for a quoted attribute, and drops characters that XML forbids.
std::string escape(std::string_view text);
/// Returns at most `characters` >= 1 UTF-8 characters; the last one is an ellipsis if text is cut.
std::string shortened(std::string_view text, std::size_t characters);

class Drawing {
 public:
  /// `label` is the text for screen readers.
  Drawing(double width, std::string_view label);

  double height = 0;  ///< may be set after drawing

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
  /// `cross` and `dash` are strokes, the others are filled.
  void marker(Marker shape, Point at, double radius, std::string_view attributes = "",
              std::string_view title = "");

  /// Returns the element for a page, as wide as its container.
  std::string inlined() const;
  /// Returns a letter-sized element for a page, to place next to words with the same meaning.
  std::string icon() const;
  /// Returns a standalone file on white with `scale` pixels per unit.
  std::string standalone(double scale) const;

 private:
  void points(const char* shape, std::span<const Point> points, std::string_view attributes,
              std::string_view title = "");
  void element(std::string_view name, std::string_view geometry, std::string_view attributes,
               std::string_view title = "");

  double width_;
  std::string label_, body_;
};

/// Number of colors of arms: the palette of Okabe and Ito (2008), ordered so that neighbors differ
/// strongly.
inline constexpr std::size_t kArmColors = 8;
/// Returns `class="stroke-1" stroke="#0072b2"`; from the ninth arm on, colors repeat dashed.
std::string stroke(std::size_t arm);
/// Returns `class="fill-1" fill="#0072b2"`.
std::string fill(std::size_t arm);
Marker marker(std::size_t arm);

/// Approximate width of a character, in units of the font size.
inline constexpr double kCharacterWidth = 0.54;

/// Attributes of elements that are not data.
inline constexpr const char* kText = "class=\"ink\" fill=\"#1c2126\"";
inline constexpr const char* kMuted = "class=\"soft\" fill=\"#5b646d\"";
inline constexpr const char* kGrid = "class=\"grid\" stroke=\"#e6e9ec\" stroke-width=\"0.75\"";
inline constexpr const char* kFrame = "class=\"frame\" stroke=\"#aab2ba\" stroke-width=\"0.75\"";

/// Returns whether an axis can represent a value.
bool fits_axis(double value);

/// Range of the values added to it that an axis can represent.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value);
  bool empty() const { return low > high; }
};

/// Maps values to positions, optionally on a logarithmic scale. An empty or single-value range is
/// widened. A logarithmic axis without values above 0 becomes linear.
class Axis {
 public:
  Axis(Range values, double from, double to, bool log);

  double at(double value) const;
  double from() const { return from_; }
  double to() const { return to_; }
  bool log() const { return log_; }
  /// Returns about `wanted` round values within the range: 1, 2 or 5 times a power of ten.
  std::vector<double> ticks(int wanted) const;
  /// Returns the axis with a fraction `margin` of its length left free at both ends.
  Axis padded(double margin) const;

 private:
  double place(double value) const;

  double low_, high_, from_, to_;  ///< low and high as logarithms if log_
  bool log_;
};

struct Labels {
  std::string x, y;
};

/// Draws grid, frame, tick labels and names of two axes: x along the bottom, y along the left, with
/// labels 48 units wide.
void draw_axes(Drawing& drawing, const Axis& x, const Axis& y, const Labels& labels,
               std::span<const double> x_ticks = {});

/// Draws the names of arms in their colors from left to right, in as many lines as needed between
/// `at` and `right`. Returns the height used.
double legend(Drawing& drawing, Point at, double right, std::span<const std::string> names);

}  // namespace difftape::study::svg
