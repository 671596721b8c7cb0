#pragma once
// Learning-rate sensitivity and an interval for it.

#include <functional>
#include <vector>

#include "core/random.h"

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

}  // namespace difftape::stats
