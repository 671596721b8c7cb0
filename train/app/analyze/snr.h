#pragma once
// How much better than softmax does the difference of two maps find a needle in noise? Measured
// over the noise's amplitude, its correlation between the maps, and lambda.

#include <string>
#include <vector>

#include "train/app/analyze/needle.h"
#include "train/stats/interval.h"

namespace difftape::app {

struct SnrRequest {
  Needle needle;
  std::vector<double> noise{0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4};  ///< amplitudes, ascending
  std::vector<double> correlation{0, 0.5, 0.9, 1};            ///< each in 0..1
  Index lambdas = 21;  ///< equal steps from 0 to 1, both included
  Index trials = 200;
  Index seed = 1;
  double threshold = 1;  ///< the ratio below which a map counts as unusable
};
/// Throws UsageError with the option and the rule.
void require_measurable(const SnrRequest& request);

/// One amplitude and correlation.
struct SnrPoint {
  double correlation, noise;
  std::vector<stats::Ratio> snr;   ///< by lambda; lambda 0 is softmax
  std::vector<stats::Ratio> gain;  ///< the same over lambda 0, trial by trial
  size_t best;                     ///< position of the lambda with the largest snr
};

/// The amplitude at which the ratio falls below the threshold for good, between measured amplitudes
/// on a straight line of ln snr; infinite if it is above at the largest, -infinite if it is nowhere
/// above.
struct Crossover {
  double correlation;
  double softmax;
  double differential;  ///< at each amplitude's best lambda
};

struct SnrResult {
  SnrRequest request;
  std::vector<double> lambdas;
  std::vector<SnrPoint> points;  ///< by correlation, then by noise
  std::vector<Crossover> crossovers;
};

SnrResult measure_snr(const SnrRequest& request);

/// Where ln(ratios) over `noise` falls below ln(threshold) for good.
double find_crossover(std::span<const double> noise, std::span<const double> ratios,
                      double threshold);

}  // namespace difftape::app
