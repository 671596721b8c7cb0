#include "train/run/diagnostics/statistics.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/real.h"

namespace difftape::run {

namespace {

/// Median of values of which none is NaN.
double median(std::span<real> values) {
  if (values.empty()) return kNaN;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  const auto upper = static_cast<double>(*middle);
  if (values.size() % 2 == 1) return upper;
  return (upper + static_cast<double>(*std::max_element(values.begin(), middle))) / 2;
}

}  // namespace

Spread spread_of(std::span<const double> values) {
  if (values.empty()) return {kNaN, kNaN, kNaN, kNaN};
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  if (std::isnan(sum) && std::ranges::any_of(values, [](double x) { return std::isnan(x); })) {
    return {kNaN, kNaN, kNaN, kNaN};
  }
  const double mean = sum / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto [min, max] = std::ranges::minmax(values);
  return {mean, std::sqrt(squares / n), min, max};
}

TopValues top_values(std::span<real> magnitudes) {
  const bool nan = std::ranges::any_of(magnitudes, [](real x) { return std::isnan(x); });
  if (nan) return {kNaN, kNaN, kNaN, kNaN, kNaN, kNaN};
  const double middle = median(magnitudes);
  // Since the median was found, the largest stand in the upper half.
  const size_t size = magnitudes.size(), upper = std::min(size, std::max(size / 2, size_t{100}));
  const std::span<real> high = magnitudes.last(upper);
  const size_t top = std::min(size_t{100}, upper);
  std::partial_sort(high.begin(), high.begin() + static_cast<std::ptrdiff_t>(top), high.end(),
                    std::greater<>());
  const auto rank = [&](size_t r) { return r <= top ? static_cast<double>(high[r - 1]) : kNaN; };
  return {rank(1), rank(2), rank(3), rank(10), rank(100), middle};
}

std::vector<double> list_of(const TopValues& values) {
  return {values.top1, values.top2, values.top3, values.top10, values.top100, values.median};
}

double rms(const Tensor& x) {
  double squares = 0;
  for (const real value : x.values()) squares += static_cast<double>(value) * value;
  return std::sqrt(squares / static_cast<double>(x.size()));
}

double kurtosis(const Tensor& x) {
  const Index rows = x.shape().rows(), features = x.shape().last();
  std::vector<double> squares(static_cast<size_t>(features));  // of each feature, summed over rows
  for (Index i = 0; i < rows; ++i) {
    const real* row = x.row(i);
    for (size_t j = 0; j < squares.size(); ++j) {
      squares[j] += static_cast<double>(row[j]) * static_cast<double>(row[j]);
    }
  }
  double second = 0, fourth = 0;
  for (double square : squares) {
    square /= static_cast<double>(rows);
    second += square;
    fourth += square * square;
  }
  return fourth * static_cast<double>(features) / (second * second);
}

}  // namespace difftape::run
