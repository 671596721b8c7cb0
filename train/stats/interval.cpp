#include "train/stats/interval.h"

#include <algorithm>
#include <array>
#include <boost/math/distributions/students_t.hpp>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "train/stats/descriptive.h"

namespace difftape::stats {

double student_t_quantile(double probability, double degrees) {
  return quantile(boost::math::students_t(degrees), probability);
}

double student_t_two_sided(double t, double degrees) {
  if (!std::isfinite(t)) return std::isnan(t) ? t : 0;
  return 2 * cdf(boost::math::students_t(degrees), -std::abs(t));
}

Interval mean_interval(std::span<const double> values) {
  if (values.empty()) return {};
  Interval interval{.mean = mean(values)};
  if (values.size() < 2) return interval;
  const double squares = squared_deviations(values), n = static_cast<double>(values.size());
  const double t = student_t_quantile(0.975, n - 1);
  interval.half_width = t * std::sqrt(squares / (n - 1) / n);
  return interval;
}

namespace {

/// Differences are equal if they differ by less than this fraction of the values, as 0.4 - 0.1 and
/// 0.3 - 0.0 do by rounding. An error below this fraction of the largest gap counts as 0.
constexpr double kRounding = 1e-9;

double largest_magnitude(std::span<const double> a, std::span<const double> b) {
  double largest = 0;
  for (const auto& values : {a, b})
    for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

}  // namespace

PairedDifference t_estimate(double estimate, double error, double degrees, Index pairs) {
  return {.difference = {estimate, student_t_quantile(0.975, degrees) * error},
          .p = student_t_two_sided(estimate / error, degrees),
          .pairs = pairs,
          .error = error,
          .degrees = degrees};
}

ErrorPart sum_of_errors(std::span<const ErrorPart> parts) {
  double variance = 0, squares = 0;
  for (const ErrorPart& part : parts) {
    if (part.variance == 0) continue;
    variance += part.variance;
    squares += part.variance * part.variance / part.degrees;
  }
  return {variance, variance * variance / squares};
}

PairedDifference paired_difference(std::span<const double> a, std::span<const double> b) {
  assert(a.size() == b.size());
  std::vector<double> differences;
  for (std::size_t i = 0; i < a.size(); ++i) differences.push_back(a[i] - b[i]);
  PairedDifference result;
  result.pairs = std::ssize(differences);
  result.degrees = static_cast<double>(result.pairs - 1);
  result.difference = mean_interval(differences);
  if (result.pairs < 2 || !std::isfinite(result.difference.mean)) return result;
  const auto [low, high] = std::minmax_element(differences.begin(), differences.end());
  const double rounding = kRounding * largest_magnitude(a, b);
  if (*high - *low <= rounding) {
    const bool none = std::abs(result.difference.mean) <= rounding;
    result.difference = {none ? 0 : result.difference.mean, 0};
    result.error = 0;
    result.p = none ? 1 : std::pow(2.0, 1.0 - static_cast<double>(a.size()));
    return result;
  }
  const double error = result.difference.half_width / student_t_quantile(0.975, result.degrees);
  return t_estimate(result.difference.mean, error, result.degrees, result.pairs);
}

namespace {

double count_of(const SizeGaps& size) { return static_cast<double>(size.gaps.size()); }

/// Returns the unbiased variance of a sample of at least two.
double sample_variance(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  return variance(values) * n / (n - 1);
}

/// Contribution to the estimate from the seeds that were trained at the same sizes.
struct SeedClass {
  std::vector<double> parts;
  double variance_of_one = 0;  ///< from the variances of the sizes
};

/// Groups the seeds by their sizes, given as a mask.
std::map<std::vector<bool>, SeedClass> classes_of(std::span<const SizeGaps> sizes,
                                                  const std::vector<double>& weights) {
  std::map<std::uint64_t, std::vector<bool>> sizes_of_seed;
  std::map<std::uint64_t, double> part_of_seed;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    for (std::size_t j = 0; j < sizes[i].seeds.size(); ++j) {
      std::vector<bool>& mask = sizes_of_seed[sizes[i].seeds[j]];
      mask.resize(sizes.size());
      mask[i] = true;
      part_of_seed[sizes[i].seeds[j]] += weights[i] * sizes[i].gaps[j];
    }
  }
  std::map<std::vector<bool>, SeedClass> classes;
  for (const auto& [seed, mask] : sizes_of_seed) {
    SeedClass& of_seed = classes[mask];
    of_seed.parts.push_back(part_of_seed[seed]);
    of_seed.variance_of_one = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (mask[i])
        of_seed.variance_of_one += weights[i] * weights[i] * sample_variance(sizes[i].gaps);
  }
  return classes;
}

}  // namespace

std::vector<double> gap_weights(std::span<const SizeGaps> sizes, Trend trend) {
  std::vector<double> weights;
  if (trend == Trend::mean) {
    for (const SizeGaps& each : sizes)
      weights.push_back(1 / (static_cast<double>(sizes.size()) * count_of(each)));
    return weights;
  }
  double runs = 0, sum = 0, squares = 0;
  for (const SizeGaps& each : sizes) {
    runs += count_of(each);
    sum += count_of(each) * std::log10(each.size);
  }
  for (const SizeGaps& each : sizes) {
    weights.push_back(std::log10(each.size) - sum / runs);
    squares += count_of(each) * weights.back() * weights.back();
  }
  for (double& weight : weights) weight /= squares;
  return weights;
}

PairedDifference size_trend(std::span<const SizeGaps> sizes, Trend trend) {
  const std::vector<double> weights = gap_weights(sizes, trend);
  double estimate = 0, largest = 0;
  Index pairs = 0, fewest = std::numeric_limits<Index>::max();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::vector<double>& gaps = sizes[i].gaps;
    estimate += weights[i] * std::accumulate(gaps.begin(), gaps.end(), 0.0);
    for (const double gap : gaps) largest = std::max(largest, std::abs(gap));
    pairs += std::ssize(gaps);
    fewest = std::min(fewest, std::ssize(gaps));
  }
  PairedDifference unknown{.difference = {estimate, kNaN}, .pairs = pairs};
  std::vector<ErrorPart> parts;
  for (const auto& [mask, seeds] : classes_of(sizes, weights)) {
    const auto n = static_cast<double>(seeds.parts.size());
    parts.push_back(n < 2 ? ErrorPart{seeds.variance_of_one, static_cast<double>(fewest - 1)}
                          : ErrorPart{n * sample_variance(seeds.parts), n - 1});
  }
  const auto [variance, degrees] = sum_of_errors(parts);
  const double error = std::sqrt(variance);
  if (!(error > kRounding * largest)) return unknown;
  return t_estimate(estimate, error, degrees, pairs);
}

}  // namespace difftape::stats
