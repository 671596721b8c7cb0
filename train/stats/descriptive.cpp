#include "train/stats/descriptive.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/real.h"

namespace difftape::stats {

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return kNaN;
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const auto at = values.begin() + below;
  std::nth_element(values.begin(), at, values.end());
  const double low = *at;
  const double high = at + 1 == values.end() ? low : *std::min_element(at + 1, values.end());
  return low == high ? low : low + (position - static_cast<double>(below)) * (high - low);
}

double median_of_sorted(std::span<const double> values) {
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle]
                                : std::midpoint(values[middle - 1], values[middle]);
}

// The half of the values that is nearest to the median is a window, which bisection finds.
double median_deviation_of_sorted(std::span<const double> values) {
  const double median = median_of_sorted(values);
  const auto distance = [&](std::size_t i) { return std::abs(values[i] - median); };
  const std::size_t half = values.size() / 2;
  std::size_t first = 0;
  for (std::size_t end = half; first < end;) {
    const std::size_t middle = std::midpoint(first, end);
    if (distance(middle) < distance(middle + half))
      end = middle;
    else
      first = middle + 1;
  }
  const std::size_t end = first + half;
  const double next = std::min(first > 0 ? distance(first - 1) : kInfinity,
                               end < values.size() ? distance(end) : kInfinity);
  if (values.size() % 2 == 1) return next;
  return std::midpoint(std::max(distance(first), distance(end - 1)), next);
}

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double squared_deviations(std::span<const double> values) {
  const double center = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - center) * (value - center);
  return squares;
}

double variance(std::span<const double> values) {
  return squared_deviations(values) / static_cast<double>(values.size());
}

double variation(std::span<const double> values) {
  const double median = quantile({values.begin(), values.end()}, 0.5);
  return values.size() > 1 && median > 0 ? std::sqrt(variance(values)) / median : kNaN;
}

double slope(std::span<const double> x, std::span<const double> y) {
  const double center_x = mean(x), center_y = mean(y);
  double products = 0, squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    products += (x[i] - center_x) * (y[i] - center_y);
    squares += (x[i] - center_x) * (x[i] - center_x);
  }
  return squares > 0 ? products / squares : kNaN;
}

double correlation(std::span<const double> x, std::span<const double> y) {
  const double center_x = mean(x), center_y = mean(y);
  double products = 0, squares_x = 0, squares_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    products += (x[i] - center_x) * (y[i] - center_y);
    squares_x += (x[i] - center_x) * (x[i] - center_x);
    squares_y += (y[i] - center_y) * (y[i] - center_y);
  }
  return squares_x > 0 && squares_y > 0 ? products / std::sqrt(squares_x * squares_y) : kNaN;
}

double growth_exponent(std::span<const double> x, std::span<const double> y) {
  std::vector<double> log_x, log_y;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (!(x[i] > 0 && y[i] > 0 && std::isfinite(x[i]) && std::isfinite(y[i]))) continue;
    log_x.push_back(std::log(x[i]));
    log_y.push_back(std::log(y[i]));
  }
  return slope(log_x, log_y);
}

Series finite(const Series& series) {
  Series result;
  for (std::size_t i = 0; i < series.step.size(); ++i) {
    if (!std::isfinite(series.value[i])) continue;
    result.step.push_back(series.step[i]);
    result.value.push_back(series.value[i]);
  }
  return result;
}

}  // namespace difftape::stats
