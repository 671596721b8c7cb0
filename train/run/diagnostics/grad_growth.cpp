#include "train/run/diagnostics/grad_growth.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "train/stats/descriptive.h"

namespace difftape::run {

double grad_norm_growth(std::span<const double> norms) {
  const std::size_t first = norms.size() / 2;
  const auto late = norms.subspan(first);
  std::vector<double> steps(late.size());
  std::iota(steps.begin(), steps.end(), static_cast<double>(first + 1));
  return stats::growth_exponent(steps, late);
}

double grad_norm_late_variance(std::span<const double> norms) {
  std::vector<double> late;
  for (const double norm : norms.last((norms.size() + 3) / 4)) {
    if (std::isfinite(norm)) late.push_back(norm);
  }
  return stats::variance(late);
}

}  // namespace difftape::run
