#include "train/stats/decision.h"

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/real.h"

namespace difftape::stats {

namespace {

/// Sums that only rounding tells apart are equal.
constexpr double kRounding = 1e-9;

double upper_tail(double t, Index degrees) {
  const double two_sided = student_t_two_sided(t, degrees);
  return t >= 0 ? two_sided / 2 : 1 - two_sided / 2;
}

}  // namespace

double equivalence_p(const PairedDifference& difference, double margin) {
  if (difference.pairs < 2 || !(margin > 0) || std::isnan(difference.error)) {
    return kNaN;
  }
  const double distance = margin - std::abs(difference.difference.mean);
  if (difference.error == 0) return distance > 0 ? least_p(difference.pairs) : 1;
  return upper_tail(distance / difference.error, difference.pairs - 1);
}

double upper_p(const PairedDifference& difference, double from) {
  if (difference.pairs < 2 || std::isnan(difference.error)) return kNaN;
  const double distance = difference.difference.mean - from;
  if (difference.error == 0) return distance > 0 ? least_p(difference.pairs) : 1;
  return upper_tail(distance / difference.error, difference.pairs - 1);
}

double least_p(Index pairs) { return std::exp2(static_cast<double>(1 - pairs)); }

double sign_flip_p(std::span<const double> differences) {
  const std::size_t n = differences.size();
  if (n == 0 || n > kMostSignFlips) return kNaN;
  if (std::any_of(differences.begin(), differences.end(), [](double d) { return std::isnan(d); })) {
    return kNaN;
  }
  const double found = std::abs(std::accumulate(differences.begin(), differences.end(), 0.0));
  double most = 0;
  for (const double d : differences) most += std::abs(d);
  const std::size_t ways = std::size_t{1} << (n - 1);  // a sum and its negative are equally far
  std::size_t as_far = 0;
  for (std::size_t signs = 0; signs < ways; ++signs) {
    double sum = differences[n - 1];
    for (std::size_t i = 0; i + 1 < n; ++i) {
      sum += (signs >> i & 1) != 0 ? -differences[i] : differences[i];
    }
    as_far += std::abs(sum) >= found - kRounding * most ? 1 : 0;
  }
  return static_cast<double>(as_far) / static_cast<double>(ways);
}

double sequential_p(double p, Index pairs) {
  const auto after = std::find_if(kLooks.begin(), kLooks.end(),
                                  [&](const Look& look) { return look.pairs > pairs; });
  if (after == kLooks.begin()) return kNaN;
  const Look& look = *std::prev(after);
  const double slope = std::log(0.05 / 0.01) / std::log(look.level / look.level_of_hundredth);
  return std::min(1.0, 0.05 * std::pow(p / look.level, slope));
}

double paired_power(double effect, double spread, Index pairs, double alpha) {
  const Index degrees = pairs - 1;
  const double limit = student_t_quantile(1 - alpha / 2, degrees);
  const double shift = std::abs(effect) / spread * std::sqrt(static_cast<double>(pairs));
  const boost::math::non_central_t found(static_cast<double>(degrees), shift);
  return cdf(complement(found, limit)) + cdf(found, -limit);
}

double one_sided_power(double effect, double spread, Index pairs, double alpha) {
  const Index degrees = pairs - 1;
  const double shift = effect / spread * std::sqrt(static_cast<double>(pairs));
  const boost::math::non_central_t found(static_cast<double>(degrees), shift);
  return cdf(complement(found, student_t_quantile(1 - alpha, degrees)));
}

double equivalence_power(double margin, double spread, Index pairs, double alpha, double effect) {
  // The mean difference d and the sample's deviation s are independent; both tests reject where
  // |d| + t s / sqrt(n) is below the margin.
  const auto n = static_cast<double>(pairs), degrees = n - 1;
  const double t = student_t_quantile(1 - alpha, pairs - 1), error = spread / std::sqrt(n);
  const boost::math::chi_squared squares(degrees);  // degrees (s / spread)^2
  const auto below = [&](double room) { return std::erfc(-room / std::numbers::sqrt2) / 2; };
  const auto both_reject = [&](double s_over_spread) {
    const double room = margin / error - t * s_over_spread, shift = effect / error;
    return 2 * degrees * s_over_spread * pdf(squares, degrees * s_over_spread * s_over_spread) *
           (below(room - shift) - below(-room - shift));
  };
  return boost::math::quadrature::gauss_kronrod<double, 61>::integrate(
      both_reject, 0, margin / error / t, 10, 1e-10);
}

Index fewest_pairs(const std::function<double(Index)>& power_of, double power, Index most) {
  if (power_of(most) < power) return 0;
  Index low = 1, high = most;
  while (high - low > 1) {
    const Index middle = (low + high) / 2;
    (power_of(middle) >= power ? high : low) = middle;
  }
  return high;
}

}  // namespace difftape::stats
