#include "train/app/analyze/needle.h"

#include <cmath>

#include "core/random.h"

namespace difftape::app {

Eigen::ArrayXd softmax_row(const Eigen::ArrayXd& scores) {
  Eigen::ArrayXd weights = (scores - scores.maxCoeff()).exp();
  weights /= weights.sum();
  return weights;
}

double signal_to_noise(const Eigen::ArrayXd& weights) {
  return std::abs(weights[0]) / weights.tail(weights.size() - 1).abs().mean();
}

TwoMaps draw_maps(const Needle& needle, double noise, double correlation, std::uint64_t seed,
                  Index trial) {
  const RandomStream shared(seed, "snr/first map"), own(seed, "snr/second map");
  const double rest = std::sqrt(1 - correlation * correlation);
  Eigen::ArrayXd first(needle.tokens), second(needle.tokens);
  first[0] = needle.signal;
  second[0] = needle.second_signal;
  for (Index j = 1; j < needle.tokens; ++j) {
    const auto index = static_cast<std::uint64_t>(trial * needle.tokens + j);
    const double n = shared.normal(index);
    first[j] = noise * n;
    second[j] = noise * (correlation * n + rest * own.normal(index));
  }
  return {softmax_row(first), softmax_row(second)};
}

}  // namespace difftape::app
