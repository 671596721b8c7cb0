#pragma once
// Estimates an arm's optimal learning rate between the rungs of a ladder.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/real.h"

namespace difftape::stats {

/// Values in groups, for example the final losses of all seeds at one learning rate.
using Groups = std::vector<std::vector<double>>;

/// Returns the final validation loss, capped. A run that diverged (`final` NaN or infinite) gets
/// the cap. NaN if the cap is not finite.
double capped_loss(double final, double cap);

/// Learning-rate sensitivity (Wortsman et al. 2023, section 2.2): the mean over the swept peak
/// learning rates of [loss - best loss], in nats per token. `losses` has one group per learning
/// rate: the capped losses of its seeds. The loss of a learning rate is their mean, the best loss
/// the lowest of these. A shift of the best learning rate does not change it. NaN with fewer than
/// two learning rates, for an empty group and for a loss that is not finite.
double lr_sensitivity(const Groups& losses);

/// Two-sided 95 % limits; both NaN if there are none.
struct Limits {
  double low, high;
};

/// Returns the 2.5 % and 97.5 % quantiles of `statistic` over `resamples` draws (percentile
/// bootstrap, Efron 1979). A draw resamples every group with replacement. It is deterministic: draw
/// r uses the numbers of `random` from index r * (count of values) on. Returns nothing if a group
/// has fewer than two values, because its spread is unknown. Limits from few values are too narrow:
/// three seeds show two thirds of their variance.
Limits bootstrap_limits(const Groups& groups, const std::function<double(const Groups&)>& statistic,
                        const RandomStream& random, int resamples = 10000);

/// Minimum number of seeds for an interval of the optimum.
inline constexpr std::size_t kFewestSeedsOfOptimum = 4;

struct LrOptimum {
  double lr = kNaN;                ///< lr*; NaN without an optimum
  double low = kNaN, high = kNaN;  ///< 95 % limits; NaN with too few seeds
  double loss = kNaN;              ///< loss of the parabola at lr*
  std::size_t lowest = 0;          ///< the rung of the lowest mean loss
  std::string reason = {};         ///< reason for no optimum; empty if there is one
};

/// Returns the vertex of the parabola in log(lr) through the rung with the lowest mean loss over
/// the seeds (the first of several) and its two neighbors. `rates` ascend. `losses` holds, per
/// rate, the final losses (capped_loss) of the same seeds in the same order. The reason is set for
/// fewer than three rates, no seed, a loss that is not finite, a lowest mean at an end of the
/// ladder, and three equal means.
///
/// The limits come from a bootstrap over seeds, each drawn with its losses at all rates. A draw
/// whose lowest loss is at an end of the ladder contributes that end. The limits are expanded
/// percentiles (Hesterberg 2015): a plain bootstrap of n seeds uses the normal quantile and
/// (n-1)/n of the variance; the expanded ones use the t quantile and all of the variance. They
/// depend on the losses and `random` alone.
LrOptimum lr_optimum(std::span<const double> rates, std::span<const std::vector<double>> losses,
                     const RandomStream& random, int resamples = 10000);

}  // namespace difftape::stats
