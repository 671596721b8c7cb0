#pragma once
// How much better than softmax does the difference of two maps find a needle in noise? Measured
// over the noise's amplitude, its correlation between the maps, and lambda.
//
// One row of attention that has to find one position among many: the needle in noise.
//
// Position 0 of the row is the needle, the others are unrelated to the query. The scores, after the
// division by sqrt(head_dim), are
//   first map    signal at the needle,         noise n_j                elsewhere
//   second map   second_signal at the needle,  noise (c n_j + sqrt(1 - c^2) m_j)
// with n_j, m_j independent standard normal numbers and c the correlation of the two maps' noise.
// Scores of random keys are of this form: noise is then |q| / sqrt(head_dim) times the standard
// deviation of the keys.

#include <Eigen/Core>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/real.h"
#include "train/stats/interval.h"

namespace difftape::app {

struct Needle {
  Index tokens = 1024;       ///< positions of the row, the needle among them; at least 2
  double signal = 4;         ///< score of the needle in the first map
  double second_signal = 0;  ///< and in the second
};

/// Softmax weights of a row of scores.
Eigen::ArrayXd softmax_row(const Eigen::ArrayXd& scores);

/// The signal-to-noise ratio of a row of weights: |weight of the needle| over the mean |weight| of
/// the other positions. Infinite if only the needle has weight, NaN if nothing has.
double signal_to_noise(const Eigen::ArrayXd& weights);

/// The two maps of one trial. Trials draw from streams of their own; a trial's draws are the same
/// for every amplitude and correlation, so that measurements differ by these alone.
struct TwoMaps {
  Eigen::ArrayXd first, second;  // (tokens)
};
TwoMaps draw_maps(const Needle& needle, double noise, double correlation, std::uint64_t seed,
                  Index trial);

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

/// What is measured, in words.
std::string describe_snr(const SnrRequest& request);
/// Tables of the results: a row for each amplitude, and one for each correlation with crossovers
/// and the largest gain.
std::string snr_tables(const SnrResult& result);

/// The first line of the CSV file.
inline constexpr const char* kSnrHeader =
    "correlation,noise,lambda,snr,snr_low,snr_high,gain,gain_low,gain_high";

/// One line for each correlation, amplitude and lambda. Throws OutputError.
void write_snr_csv(const std::filesystem::path& path, const SnrResult& result);

/// /correlation, /noise, /lambda, /{snr,gain}/{value,low,high} of (correlations, amplitudes,
/// lambdas), /crossover/{softmax,differential} by correlation, and the attribute `request` (JSON).
/// Throws OutputError.
void write_snr_h5(const std::filesystem::path& path, const SnrResult& result);

}  // namespace difftape::app
