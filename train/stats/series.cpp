#include "train/stats/series.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "train/stats/descriptive.h"

namespace difftape::stats {

Series numbered(std::span<const double> values) {
  Series series{std::vector<double>(values.size()), {values.begin(), values.end()}};
  std::iota(series.step.begin(), series.step.end(), 1.0);
  return series;
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

Series late(const Series& series, double share) {
  if (series.step.empty()) return {};
  const auto first =
      std::upper_bound(series.step.begin(), series.step.end(), (1 - share) * series.step.back());
  return {{first, series.step.end()},
          {series.value.begin() + (first - series.step.begin()), series.value.end()}};
}

double late_growth(const Series& series) {
  const Series half = late(series, kSecondHalf);
  return growth_exponent(half.step, half.value);
}

double late_variance(const Series& series) {
  return variance(finite(late(series, kLastQuarter)).value);
}

double late_variation(const Series& series) {
  const std::vector<double> values = late(series, kLastQuarter).value;
  const double median = quantile(values, 0.5);
  return values.size() > 1 && median > 0 ? std::sqrt(variance(values)) / median
                                         : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace difftape::stats
