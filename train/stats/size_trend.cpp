#include "train/stats/size_trend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "train/stats/descriptive.h"

namespace difftape::stats {

namespace {

/// An error smaller than this fraction of the largest gap is rounding.
constexpr double kRounding = 1e-9;

double count_of(const SizeGaps& size) { return static_cast<double>(size.gaps.size()); }

/// Of a sample of at least two.
double sample_variance(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  return variance(values) * n / (n - 1);
}

/// What seeds that were trained at the same sizes contribute to the estimate.
struct SeedClass {
  std::vector<double> parts;
  double variance_of_one = 0;  ///< from the variances of the sizes
};

/// By the sizes, as a mask.
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
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (mask[i])
        of_seed.variance_of_one += weights[i] * weights[i] * sample_variance(sizes[i].gaps);
    }
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
  if (fewest < 2) return unknown;
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
