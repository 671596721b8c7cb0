#pragma once
// Curves over steps, with the spread of replicates as a band.

#include <optional>
#include <string>
#include <vector>

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

struct LinePlot {
  std::string title, x_label, y_label;
  bool log_y = false;
  std::optional<double> reference;  ///< a dashed horizontal line
  std::string reference_name;
  std::vector<Line> lines;
};

/// 440 units wide; values that a logarithmic axis cannot show are left out.
Drawing line_plot(const LinePlot& plot);

}  // namespace difftape::study::svg
