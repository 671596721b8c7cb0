#include "train/stats/decision.h"

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <numbers>

#include "core/real.h"

namespace difftape::stats {
Interval interval_at(const PairedDifference& difference, double level) {
  const double mean = difference.difference.mean;
  if (difference.pairs < 2 || std::isnan(difference.error)) return {mean, kInfinity};
  if (difference.error == 0) return {mean, least_p(difference.pairs) <= level ? 0 : kInfinity};
  return {mean, student_t_quantile(1 - level / 2, difference.degrees) * difference.error};
}

double least_p(Index pairs) { return std::exp2(static_cast<double>(1 - pairs)); }

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

}  // namespace difftape::stats
