#pragma once
// The last values of a series, with their mean and spread.

#include <deque>
#include <optional>
#include <span>

#include "core/real.h"

namespace difftape::stats {

/// Of n values: their mean, and the sum of the squared deviations from it.
struct Moments {
  double n, mean, squares;
};

/// Finite values, oldest first. Whoever fills it says when the oldest goes.
class SlidingWindow {
 public:
  SlidingWindow() = default;
  explicit SlidingWindow(std::span<const double> values);

  void add(double value);
  /// Of a window that is not empty.
  void drop_oldest();

  Index size() const { return std::ssize(values_); }
  const std::deque<double>& values() const { return values_; }

  /// Of the values from the one at `first` on, and of `one_more`; there must be one. In two passes
  /// each time: exact to rounding, where running sums would cancel.
  Moments moments(Index first = 0, std::optional<double> one_more = {}) const;
  /// Of all values from running sums, whatever the size of the window: right to one part in a
  /// thousand of the spread. Nothing where cancellation may have left less.
  std::optional<Moments> rough_moments() const;

 private:
  void recentre();

  std::deque<double> values_;
  double centre_ = 0;             ///< the mean when the sums were last made
  double sum_ = 0, squares_ = 0;  ///< of the deviations from it and of their squares
  double largest_ = 0;            ///< that squares_ have been since
  Index added_ = 0;               ///< values since
};

}  // namespace difftape::stats
