// How much better does the difference of two softmax maps find a needle in noise than one map?
// Trains nothing: it draws attention scores and measures the weights that follow from them.
//
//   snr [TOKENS [TRIALS]]
//
// Position 0 of a row of scores is the needle, the others are unrelated to the query:
//   first map    kSignal at the needle,  noise n_j                              elsewhere
//   second map   0 at the needle,        noise (c n_j + sqrt(1 - c^2) m_j)      elsewhere
// with n_j, m_j independent standard normal numbers and c the correlation of the maps' noise. The
// signal-to-noise ratio (SNR) is |weight of the needle| / mean |weight elsewhere| of first - lambda
// second; lambda 0 is softmax. SNRs are averaged as logarithms: where two maps nearly cancel, the
// arithmetic mean does not settle. For each row, the best of 21 lambdas is chosen on the reported
// trials: a model could not choose so well.
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <difftape/core/parallel.h>
#include <difftape/core/random.h>

using namespace difftape;
using Eigen::ArrayXd;

namespace {

constexpr double kSignal = 4;
constexpr Index kLambdas = 21;  // equal steps from 0 to 1
constexpr std::array kNoise{0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0};
constexpr std::array kCorrelations{0.0, 0.5, 0.9, 1.0};

ArrayXd softmax(const ArrayXd& scores) {
  const ArrayXd weights = (scores - scores.maxCoeff()).exp();
  return weights / weights.sum();
}

double signal_to_noise(const ArrayXd& weights) {
  return std::abs(weights[0]) / weights.tail(weights.size() - 1).abs().mean();
}

/// ln SNR of one trial at each lambda. A trial draws the same numbers for every noise and
/// correlation, so that rows of the table differ by these alone.
ArrayXd measure(Index tokens, Index trial, double noise, double correlation) {
  const RandomStream shared(1, "snr/first map"), own(1, "snr/second map");
  const double rest = std::sqrt(1 - correlation * correlation);
  ArrayXd first(tokens), second(tokens);
  first[0] = kSignal;
  second[0] = 0;
  for (Index j = 1; j < tokens; ++j) {
    const auto index = static_cast<std::uint64_t>(trial * tokens + j);
    const double n = shared.normal(index);
    first[j] = noise * n;
    second[j] = noise * (correlation * n + rest * own.normal(index));
  }
  const ArrayXd a = softmax(first), b = softmax(second);
  ArrayXd logs(kLambdas);
  for (Index i = 0; i < kLambdas; ++i) {
    const double lambda = static_cast<double>(i) / (kLambdas - 1);
    logs[i] = std::log(signal_to_noise(a - lambda * b));
  }
  return logs;
}

/// exp(mean) and its 95 % interval by the normal distribution, "5.49 (5.35-5.63)".
std::string geometric_mean(const ArrayXd& logs) {
  const double mean = logs.mean(), n = static_cast<double>(logs.size());
  const double half = 1.96 * std::sqrt((logs - mean).square().sum() / (n - 1) / n);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.4g (%.4g-%.4g)", std::exp(mean), std::exp(mean - half),
                std::exp(mean + half));
  return text.data();
}

/// The noise at which ln SNR falls below 0, between measured ones on a straight line.
std::string crossing(const std::vector<double>& logs) {
  std::size_t below = logs.size();
  while (below > 0 && logs[below - 1] < 0) --below;
  if (below == logs.size()) return "above " + std::to_string(kNoise.back()).substr(0, 4);
  if (below == 0) return "below " + std::to_string(kNoise.front()).substr(0, 4);
  const double part = logs[below - 1] / (logs[below - 1] - logs[below]);
  const double noise = kNoise[below - 1] + part * (kNoise[below] - kNoise[below - 1]);
  return std::to_string(noise).substr(0, 4);
}

}  // namespace

int main(int argc, char** argv) {
  const Index tokens = argc > 1 ? std::atoll(argv[1]) : 1024;
  const Index trials = argc > 2 ? std::atoll(argv[2]) : 200;
  if (tokens < 2 || trials < 2)
    return std::fputs("snr [TOKENS [TRIALS]], both above 1\n", stderr), 64;
  std::printf("%-11s  %-5s  %-24s  %-24s  %-11s  %-24s  %s\n", "correlation", "noise",
              "softmax (95 %)", "lambda 1", "best lambda", "its SNR", "its gain over softmax");
  for (const double correlation : kCorrelations) {
    std::vector<double> softmax_logs, best_logs;
    for (const double noise : kNoise) {
      Eigen::ArrayXXd logs(trials, kLambdas);
      parallel_for(trials, [&](Index trial) {
        logs.row(trial) = measure(tokens, trial, noise, correlation).transpose();
      });
      Index best = 0;
      softmax_logs.push_back(logs.col(0).mean());
      best_logs.push_back(logs.colwise().mean().maxCoeff(&best));
      std::printf(
          "%-11g  %-5g  %-24s  %-24s  %-11.3g  %-24s  %s\n", correlation, noise,
          geometric_mean(logs.col(0)).c_str(), geometric_mean(logs.col(kLambdas - 1)).c_str(),
          static_cast<double>(best) / (kLambdas - 1), geometric_mean(logs.col(best)).c_str(),
          geometric_mean(logs.col(best) - logs.col(0)).c_str());
    }
    std::printf("%-11g  SNR below 1 from noise %s (softmax), %s (best lambda)\n", correlation,
                crossing(softmax_logs).c_str(), crossing(best_logs).c_str());
  }
}
