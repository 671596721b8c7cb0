#pragma once
// The learning rate at which an arm does best, between the rungs of a ladder.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/real.h"

namespace difftape::stats {

/// Values in groups, for example the final losses of all seeds at one learning rate.
using Groups = std::vector<std::vector<double>>;

/// The final validation loss as sensitivity counts it: at most the initial loss, which is also that
/// of a run that diverged (`final` NaN or infinite). NaN if the initial loss is not finite.
double capped_loss(double final, double initial_loss);

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

/// Percentile bootstrap (Efron): the 2.5 % and 97.5 % quantiles of `statistic` over `resamples`
/// draws, each of which replaces every group by as many of its values drawn with replacement.
/// Deterministic: draw r takes numbers of `random` from r times the count of values on. No limits
/// if a group has fewer than two values, because its spread is unknown. With few values per group
/// the limits are too narrow: three seeds show two thirds of their variance.
Limits bootstrap_limits(const Groups& groups, const std::function<double(const Groups&)>& statistic,
                        const RandomStream& random, int resamples = 10000);

/// Seeds from which on the optimum has an interval.
inline constexpr std::size_t kFewestSeedsOfOptimum = 4;

struct LrOptimum {
  double lr = kNaN;                ///< lr*; NaN if there is none
  double low = kNaN, high = kNaN;  ///< 95 % limits; NaN with too few seeds
  double loss = kNaN;              ///< of the parabola at lr*
  std::size_t lowest = 0;          ///< the rung of the lowest mean loss
  std::string reason = {};         ///< why there is none; empty if there is
};

/// The vertex of the parabola in log(lr) through the rung of the lowest mean loss over the seeds
/// (the first of several) and its two neighbors. `rates` ascend; `losses` has the final losses of
/// each rate, at every rate those of the same seeds in the same order, of a run that diverged the
/// loss at init (capped_loss). Refused, with a reason in words: fewer than three rates, no seed,
/// a loss that is not finite, the lowest mean at an end of the ladder, three equal means.
///
/// The limits are those of a bootstrap over the seeds, each drawn with its losses at all rates; a
/// draw whose lowest rung is at an end of the ladder counts with that end. They are expanded
/// percentiles (Hesterberg 2015): a plain bootstrap of n seeds is as narrow as the normal quantile
/// and (n-1)/n of the variance make it, so the limits are taken further out, where the t quantile
/// and all of the variance lie. Deterministic: they depend on the losses and `random` alone.
LrOptimum lr_optimum(std::span<const double> rates, std::span<const std::vector<double>> losses,
                     const RandomStream& random, int resamples = 10000);

}  // namespace difftape::stats
