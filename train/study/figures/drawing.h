#pragma once
// SVG elements, written one after another. Positions are in user units, y downwards. `attributes`
// are written as they are; names and titles are escaped.
//
// Colours are presentation attributes, which stand alone in a file, next to a class by which the
// page replaces them for a dark screen (page/svg.css).

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace difftape::study {

/// Text as HTML text or as the value of a quoted attribute.
std::string escape_html(std::string_view text);

namespace svg {

struct Point {
  double x, y;
};
using Points = std::vector<Point>;

/// Shapes that tell arms apart without their colour.
enum class Marker { circle, square, triangle, diamond, down, cross, plus };

/// At most two decimals, "12.5"; what is finer than a hundredth of a unit is not seen.
std::string number(double value);
/// Text as XML text or as the value of a quoted attribute, without the characters XML forbids.
std::string escape(std::string_view text);
/// At most `characters` (at least 1) characters of UTF-8, the last of them an ellipsis if cut.
std::string shortened(std::string_view text, std::size_t characters);

class Drawing {
 public:
  /// `label` is what a screen reader says of the picture.
  Drawing(double width, double height, std::string_view label);

  double width() const { return width_; }
  double height() const { return height_; }

  void open(std::string_view attributes);  ///< a group, until close()
  void close();
  void line(Point from, Point to, std::string_view attributes = "");
  void polyline(std::span<const Point> points, std::string_view attributes = "");
  void polygon(std::span<const Point> points, std::string_view attributes = "");
  void rect(Point corner, double width, double height, std::string_view attributes = "",
            std::string_view title = "");
  void text(Point at, std::string_view text, std::string_view attributes = "");
  /// `cross` and `plus` are strokes, the others are filled.
  void marker(Marker shape, Point at, double radius, std::string_view attributes = "",
              std::string_view title = "");

  /// The element for a page, as wide as its container lets it be.
  std::string inlined() const;
  /// A file of its own on white, `scale` pixels a unit.
  std::string standalone(double scale) const;

 private:
  void element(std::string_view name, std::string_view geometry, std::string_view attributes,
               std::string_view title = "");

  double width_, height_;
  std::string label_, body_;
};

}  // namespace svg
}  // namespace difftape::study
