#pragma once
// Axes: where a value stands, where the ticks are, and their drawing.

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "train/study/figures/drawing.h"

namespace difftape::study::svg {

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
/// its labels take 48 units. An empty name is left out.
/// `x_ticks` replaces the round ticks of x.
void draw_axes(Drawing& drawing, const Axis& x, const Axis& y, const Labels& labels,
               std::span<const double> x_ticks = {});

/// Draws the names of arms in their colours from left to right, in as many lines as `at` ...
/// `right` needs, and returns the height used.
double legend(Drawing& drawing, Point at, double right, std::span<const std::string> names);

}  // namespace difftape::study::svg
