#include "train/stats/lr_optimum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/real.h"
#include "train/stats/descriptive.h"
#include "train/stats/interval.h"

namespace difftape::stats {

double capped_loss(double final, double cap) {
  if (!std::isfinite(cap)) return kNaN;
  return std::isfinite(final) ? std::min(final, cap) : cap;
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
  for (const std::vector<double>& group : groups)
    if (group.size() < 2) return {kNaN, kNaN};
  std::vector<double> statistics;
  Groups drawn = groups;
  std::uint64_t index = 0;
  for (int resample = 0; resample < resamples; ++resample) {
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (double& value : drawn[g]) value = groups[g][random.below(index++, groups[g].size())];
    statistics.push_back(statistic(drawn));
    if (std::isnan(statistics.back())) return {kNaN, kNaN};
  }
  return {quantile(statistics, 0.025), quantile(statistics, 0.975)};
}

namespace {

struct Vertex {
  double x, y;
};

/// Returns the vertex of the parabola through three points with ascending x, the middle one lowest.
Vertex vertex(std::span<const double> x, std::span<const double> y) {
  const double left = x[1] - x[0], right = x[2] - x[1];
  const double fall = (y[0] - y[1]) / left, rise = (y[2] - y[1]) / right;  // both at least 0
  const double curvature = (fall + rise) / (left + right);
  const double slope = (rise * left - fall * right) / (left + right);  // at the middle point
  return {x[1] - slope / (2 * curvature), y[1] - slope * slope / (4 * curvature)};
}

std::size_t lowest_of(std::span<const double> means) {
  return static_cast<std::size_t>(std::ranges::min_element(means) - means.begin());
}

bool is_end(std::size_t rung, std::size_t rungs) { return rung == 0 || rung + 1 == rungs; }

/// Returns the mean over these seeds at each rate.
std::vector<double> means_of(std::span<const std::vector<double>> losses,
                             std::span<const std::size_t> seeds) {
  std::vector<double> means;
  for (const std::vector<double>& of_rate : losses) {
    double sum = 0;
    for (const std::size_t seed : seeds) sum += of_rate[seed];
    means.push_back(sum / static_cast<double>(seeds.size()));
  }
  return means;
}

std::string why_refused(std::span<const double> rates, std::span<const double> means) {
  if (rates.size() < 3) {
    return fmt::format("the ladder has {} learning rate{}, but a parabola needs 3", rates.size(),
                       rates.size() == 1 ? "" : "s");
  }
  if (!std::ranges::all_of(means, [](double mean) { return std::isfinite(mean); }))
    return "a final loss is unknown";
  const std::size_t lowest = lowest_of(means);
  if (is_end(lowest, rates.size())) {
    return fmt::format(
        "the lowest mean loss is at the {} of the ladder, {:g}; extend the ladder {}",
        lowest == 0 ? "lower end" : "upper end", rates[lowest],
        lowest == 0 ? "downward" : "upward");
  }
  return "";
}

/// Returns the fraction of draws beyond each limit, in place of 2.5 %: the probability that a
/// normal variable exceeds sqrt(n / (n-1)) times the 97.5 % quantile of Student's t.
double expanded_tail(std::size_t n) {
  const auto seeds = static_cast<double>(n);
  const double t = student_t_quantile(0.975, static_cast<Index>(n) - 1);
  return std::erfc(t * std::sqrt(seeds / (seeds - 1) / 2)) / 2;
}

/// Returns log(lr) of the vertex, or of the lowest loss if it is at an end.
double position(std::span<const double> logs, std::span<const double> means) {
  const std::size_t lowest = lowest_of(means);
  if (is_end(lowest, logs.size())) return logs[lowest];
  return vertex(logs.subspan(lowest - 1, 3), means.subspan(lowest - 1, 3)).x;
}

}  // namespace

LrOptimum lr_optimum(std::span<const double> rates, std::span<const std::vector<double>> losses,
                     const RandomStream& random, int resamples) {
  LrOptimum found;
  std::vector<std::size_t> seeds(losses.empty() ? 0 : losses.front().size());
  if (seeds.empty()) {
    found.reason = "no seed has a final loss at every learning rate of the ladder";
    return found;
  }
  std::iota(seeds.begin(), seeds.end(), 0);
  const std::vector<double> means = means_of(losses, seeds);
  found.lowest = lowest_of(means);
  found.reason = why_refused(rates, means);
  if (!found.reason.empty()) return found;

  std::vector<double> logs;
  for (const double rate : rates) logs.push_back(std::log(rate));
  const auto [x, y] = vertex(std::span(logs).subspan(found.lowest - 1, 3),
                             std::span(means).subspan(found.lowest - 1, 3));
  found.lr = std::exp(x);
  found.loss = y;
  if (seeds.size() < kFewestSeedsOfOptimum) return found;
  std::vector<double> positions;
  std::vector<std::size_t> drawn(seeds.size());
  std::uint64_t index = 0;
  for (int resample = 0; resample < resamples; ++resample) {
    for (std::size_t& seed : drawn) seed = random.below(index++, seeds.size());
    positions.push_back(position(logs, means_of(losses, drawn)));
  }
  const double outside = expanded_tail(seeds.size());
  found.low = std::exp(quantile(positions, outside));
  found.high = std::exp(quantile(positions, 1 - outside));
  return found;
}

}  // namespace difftape::stats
