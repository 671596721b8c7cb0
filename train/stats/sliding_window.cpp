#include "train/stats/sliding_window.h"

#include <algorithm>

namespace difftape::stats {

namespace {

/// Rounding of running sums stays below the 1e-10th part of what they have been. A variance above
/// this share of that, and a standard deviation above this share of the mean, is not made of it.
constexpr double kVarianceLeft = 1e-6, kStdOfMean = 1e-9;

}  // namespace

SlidingWindow::SlidingWindow(std::span<const double> values)
    : values_(values.begin(), values.end()) {
  if (!values.empty()) recentre();
}

void SlidingWindow::add(double value) {
  values_.push_back(value);
  const double deviation = value - centre_;
  sum_ += deviation;
  squares_ += deviation * deviation;
  largest_ = std::max(largest_, squares_);
  added_ += 1;
  if (added_ >= size()) recentre();
}

void SlidingWindow::drop_oldest() {
  const double deviation = values_.front() - centre_;
  sum_ -= deviation;
  squares_ -= deviation * deviation;
  values_.pop_front();
}

Moments SlidingWindow::moments(Index first, std::optional<double> one_more) const {
  const auto begin = values_.begin() + first, end = values_.end();
  const double n = static_cast<double>(end - begin + (one_more ? 1 : 0));
  double sum = one_more.value_or(0);
  for (auto x = begin; x != end; ++x) sum += *x;
  const double mean = sum / n;
  double squares = one_more ? (*one_more - mean) * (*one_more - mean) : 0;
  for (auto x = begin; x != end; ++x) squares += (*x - mean) * (*x - mean);
  return {n, mean, squares};
}

std::optional<Moments> SlidingWindow::rough_moments() const {
  if (values_.empty()) return std::nullopt;
  const double n = static_cast<double>(size());
  const Moments rough{n, centre_ + sum_ / n, squares_ - sum_ * sum_ / n};
  const double of_mean = kStdOfMean * centre_;
  const bool holds =
      rough.squares > kVarianceLeft * largest_ && rough.squares > n * of_mean * of_mean;
  return holds ? std::optional(rough) : std::nullopt;
}

/// As often as the window has been filled: rounding cannot add up, and a value costs the same in
/// every window.
void SlidingWindow::recentre() {
  const Moments exact = moments();
  centre_ = exact.mean;
  sum_ = 0;
  squares_ = exact.squares;
  largest_ = squares_;
  added_ = 0;
}

}  // namespace difftape::stats
