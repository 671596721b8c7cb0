#include "train/stats/sensitivity.h"

#include <algorithm>
#include <cmath>

#include "core/real.h"
#include "train/stats/descriptive.h"

namespace difftape::stats {

double capped_loss(double final, double initial_loss) {
  if (!std::isfinite(initial_loss)) return kNaN;
  return std::isfinite(final) ? std::min(final, initial_loss) : initial_loss;
}

double lr_sensitivity(const Groups& losses) {
  if (losses.size() < 2) return kNaN;
  std::vector<double> by_rate;
  for (const std::vector<double>& group : losses) {
    by_rate.push_back(mean(group));
    if (!std::isfinite(by_rate.back())) return kNaN;
  }
  return mean(by_rate) - *std::min_element(by_rate.begin(), by_rate.end());
}

Limits bootstrap_limits(const Groups& groups, const std::function<double(const Groups&)>& statistic,
                        const RandomStream& random, int resamples) {
  for (const std::vector<double>& group : groups) {
    if (group.size() < 2) return {kNaN, kNaN};
  }
  std::vector<double> statistics;
  Groups drawn = groups;
  std::uint64_t index = 0;
  for (int resample = 0; resample < resamples; ++resample) {
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (double& value : drawn[g]) value = groups[g][random.below(index++, groups[g].size())];
    }
    statistics.push_back(statistic(drawn));
    if (std::isnan(statistics.back())) return {kNaN, kNaN};
  }
  return {quantile(statistics, 0.025), quantile(statistics, 0.975)};
}

}  // namespace difftape::stats
