#pragma once
// One panel of the learning-rate figure.

#include <set>
#include <span>
#include <string>
#include <vector>

#include "train/study/compare/lr_curves.h"
#include "train/study/figures/axis.h"
#include "train/study/figures/drawing.h"

namespace difftape::study::svg {

/// An arm in a panel and its colour.
struct PanelCurve {
  std::size_t arm;
  const LrCurve* curve;
};

/// The arms of one size and task.
struct LrPanel {
  std::string title;
  double parameters;
  std::vector<PanelCurve> curves;
  bool is_wide;   ///< has room for a label at every learning rate
  bool is_first;  ///< of its row: names the axis of losses

  /// The height of what stands above the plot: the title, and diverged runs.
  double head() const;
  /// Draws the panel into the rectangle below and right of `corner`: head() above, then the plot
  /// of this height, then the labels of its axis.
  void draw(Drawing& drawing, Point corner, double width, double head, double height) const;

 private:
  std::set<double> rates() const;
  Range losses() const;
  void draw_diverged(Drawing& drawing, double bottom, const Axis& x) const;
};

inline constexpr double kPanelLeft = 48, kPanelRight = 12, kPanelFoot = 34;

}  // namespace difftape::study::svg
