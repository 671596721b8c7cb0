#pragma once
// A quantity in two arms, compared seed by seed.

#include <string>

#include "train/stats/interval.h"
#include "train/study/compare/quantities.h"
#include "train/study/compare/study.h"

namespace difftape::study {

/// Without numbers where `reason` says why: "no run of diff_v2 logged attn/sink_rate".
struct Comparison {
  /// Over seeds: what a seed shows at several learning rates is averaged first, since its runs
  /// share data and initial weights. Of logarithms if the quantity is a ratio.
  stats::PairedDifference paired;
  double arm, against;   ///< means over the seeds; geometric if the quantity is a ratio
  double noise_floor;    ///< pooled_std between the seeds of the arm compared with
  std::string lrs;       ///< "at 5 of 7 learning rates", "at 0.001 and 0.003" (the best of each)
  std::string diverged;  ///< "; diverged: a 1 of 6, b 0 of 6" among the runs compared, or ""
  std::string reason;
};

/// The number of a complete run in the comparison: NaN for a diverged one unless the quantity says
/// that they count.
double compared_number(const RunRecord& run, const Quantity& quantity);

/// Uses the seeds that have a complete run in both arms, and the learning rates at which each of
/// these seeds has a number in both.
Comparison compare_arms(const Arm& arm, const Arm& against, const Quantity& quantity);

}  // namespace difftape::study
