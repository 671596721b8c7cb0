#pragma once
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
#include <span>

#include "core/real.h"

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

}  // namespace difftape::app
