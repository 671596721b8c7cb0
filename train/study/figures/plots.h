#pragma once
// Curves over steps, with the spread of replicates as a band; and numbers on a grid as colours,
// with the bar that says which colour is which number.

#include <string>
#include <vector>

#include "train/study/figures/axis.h"
#include "train/study/figures/drawing.h"

namespace difftape::study::svg {

struct Line {
  std::string name;
  std::size_t arm = 0;            ///< its colour
  std::vector<double> x, y;       ///< same length, finite
  std::vector<double> low, high;  ///< the band, as long as x; empty: none
  Points spikes;                  ///< marked by a triangle above, in values
  std::vector<double> ends;       ///< x of runs that diverged, marked by a cross at the top
};

/// A dashed horizontal line with its name.
struct Level {
  std::string name;
  double y;
};

struct LinePlot {
  std::string title, x_label, y_label;
  bool log_y = false;
  std::vector<Level> levels;
  std::vector<Line> lines;
};

/// 440 units wide; values that a logarithmic axis cannot show are left out.
Drawing line_plot(const LinePlot& plot);

/// From number to colour: linear or logarithmic, over `range`.
struct Scale {
  Range range;
  bool log = false;

  /// Logarithmic if all values are above 0 and span a factor of at least 20.
  static Scale of(const Range& range);
  double share(double value) const;  ///< 0 at range.low, 1 at range.high
};

struct HeatMap {
  std::string label, x_label, y_label;
  std::vector<std::string> columns, rows;  ///< names; the first row is at the bottom
  std::vector<double> values;              ///< (rows, columns) row-major; NaN: an empty cell

  /// The number of every cell; NaN if they differ or there is none.
  double constant() const;
};

/// 300 units wide. Each cell says its row, column and value as its title, and shows its number
/// where all of them fit.
Drawing heat_map(const HeatMap& map, const Scale& scale);
/// The colours of a scale between its ends.
Drawing color_bar(const Scale& scale);

/// A name at a share of a bar, 0 at its left end.
struct BarTick {
  double at;
  std::string name;
};
/// The colours from `color(from)` to `color(1)`.
Drawing color_bar(Rgb (*color)(double), double from, const std::vector<BarTick>& ticks);

}  // namespace difftape::study::svg
