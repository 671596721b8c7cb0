#include "train/stats/interval.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>

namespace difftape::stats {

double student_t_quantile(double probability, Index degrees) {
  return quantile(boost::math::students_t(static_cast<double>(degrees)), probability);
}

double student_t_two_sided(double t, Index degrees) {
  if (!std::isfinite(t)) return std::isnan(t) ? t : 0;
  return 2 * cdf(boost::math::students_t(static_cast<double>(degrees)), -std::abs(t));
}

Interval mean_interval(std::span<const double> values) {
  if (values.empty()) return {};
  const auto n = static_cast<double>(values.size());
  Interval interval;
  interval.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (values.size() < 2) return interval;
  double squares = 0;
  for (const double value : values) squares += (value - interval.mean) * (value - interval.mean);
  const double t = student_t_quantile(0.975, static_cast<Index>(values.size()) - 1);
  interval.half_width = t * std::sqrt(squares / (n - 1) / n);
  return interval;
}

Ratio geometric_mean(std::span<const double> logs) {
  const Interval interval = mean_interval(logs);
  return {std::exp(interval.mean), std::exp(interval.low()), std::exp(interval.high())};
}

}  // namespace difftape::stats
