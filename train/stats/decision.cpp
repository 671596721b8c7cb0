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

/// Sums that differ by rounding only are equal.
constexpr double kRounding = 1e-9;

double upper_tail(double t, double degrees) {
  const double two_sided = student_t_two_sided(t, degrees);
  return t >= 0 ? two_sided / 2 : 1 - two_sided / 2;
}

}  // namespace

double equivalence_p(const PairedDifference& difference, double margin) {
  if (difference.pairs < 2 || !(margin > 0) || std::isnan(difference.error)) return kNaN;
  const double distance = margin - std::abs(difference.difference.mean);
  if (difference.error == 0) return distance > 0 ? least_p(difference.pairs) : 1;
  return upper_tail(distance / difference.error, difference.degrees);
}

double upper_p(const PairedDifference& difference, double from) {
  if (difference.pairs < 2 || std::isnan(difference.error)) return kNaN;
  const double distance = difference.difference.mean - from;
  if (difference.error == 0) return distance > 0 ? least_p(difference.pairs) : 1;
  return upper_tail(distance / difference.error, difference.degrees);
}

double least_p(Index pairs) { return std::exp2(static_cast<double>(1 - pairs)); }

double sign_flip_p(std::span<const double> differences) {
  const std::size_t n = differences.size();
  if (n == 0 || n > kMostSignFlips) return kNaN;
  if (std::any_of(differences.begin(), differences.end(), [](double d) { return std::isnan(d); }))
    return kNaN;
  const double found = std::abs(std::accumulate(differences.begin(), differences.end(), 0.0));
  double most = 0;
  for (const double d : differences) most += std::abs(d);
  const std::size_t ways = std::size_t{1}
                           << (n - 1);  // a sum and its negative are equally far from 0
  std::size_t as_far = 0;
  for (std::size_t signs = 0; signs < ways; ++signs) {
    double sum = differences[n - 1];
    for (std::size_t i = 0; i + 1 < n; ++i)
      sum += (signs >> i & 1) != 0 ? -differences[i] : differences[i];
    as_far += std::abs(sum) >= found - kRounding * most ? 1 : 0;
  }
  return static_cast<double>(as_far) / static_cast<double>(ways);
}

double two_sided_power(double effect, double error, double degrees, double alpha) {
  const double limit = student_t_quantile(1 - alpha / 2, degrees);
  const boost::math::non_central_t found(degrees, std::abs(effect) / error);
  return cdf(complement(found, limit)) + cdf(found, -limit);
}

double one_sided_power(double effect, double error, double degrees, double alpha) {
  const boost::math::non_central_t found(degrees, effect / error);
  return cdf(complement(found, student_t_quantile(1 - alpha, degrees)));
}

double equivalence_power(double margin, double error, double degrees, double alpha) {
  // The difference d and the estimate s of its error are independent; both tests reject where
  // |d| + t s is below the margin.
  const double t = student_t_quantile(1 - alpha, degrees);
  const boost::math::chi_squared squares(degrees);  // degrees (s / error)^2
  const auto both_reject = [&](double s_over_error) {
    const double room = margin / error - t * s_over_error;
    return 2 * degrees * s_over_error * pdf(squares, degrees * s_over_error * s_over_error) *
           std::erf(room / std::numbers::sqrt2);
  };
  return boost::math::quadrature::gauss_kronrod<double, 61>::integrate(
      both_reject, 0, margin / error / t, 10, 1e-10);
}

namespace {

/// A hypothesis of a claim that has a p value.
struct Test {
  double p;
  std::size_t claim;
  bool own;
};

std::vector<Test> ascending_tests(std::span<const TwoHypotheses> claims) {
  std::vector<Test> tests;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (!std::isnan(claims[i].own)) tests.push_back({claims[i].own, i, true});
    const double other = claims[i].other.value_or(kNaN);
    if (!std::isnan(other)) tests.push_back({other, i, false});
  }
  std::ranges::stable_sort(tests, {}, &Test::p);
  return tests;
}

/// Returns the number of nulls to reject before the claim counts half; -1: it never does.
int rejections_before_credit(const TwoHypotheses& claim) {
  if (claim.complementary) return -1;
  return claim.other ? 2 : 1;
}

}  // namespace

std::vector<TwoCorrected> joint_holm(std::span<const TwoHypotheses> claims) {
  std::vector<TwoCorrected> corrected(claims.size());
  std::vector<int> open;
  for (const TwoHypotheses& claim : claims) open.push_back(rejections_before_credit(claim));
  auto count = static_cast<double>(claims.size());  // nulls that can still be true
  double largest = 0;
  for (const auto& [p, claim, own] : ascending_tests(claims)) {
    largest = std::max(largest, std::min(1.0, p * count));
    TwoCorrected& of_claim = corrected[claim];
    (own ? of_claim.own : of_claim.other) = largest;
    (own ? of_claim.own_factor : of_claim.other_factor) = count;
    if (--open[claim] == 0) count -= 0.5;
  }
  return corrected;
}

}  // namespace difftape::stats
