#pragma once
// The numbers of a claim: a metric in its two arms seed by seed, at one size or over several, and
// what they add up to.

#include <span>
#include <string>
#include <vector>

#include "train/stats/interval.h"
#include "train/study/compare/claims/claims_file.h"
#include "train/study/compare/claims/pairs.h"
#include "train/study/compare/run_record.h"

namespace difftape::study {

/// Fewer seeds, at one size or at any of several, decide nothing.
inline constexpr Index kSeedsForVerdict = 3;

/// The differences at one of several sizes.
struct GapAtSize {
  Index d_model = 0;
  double parameters = kNone;
  Index seeds = 0;
  stats::Interval gap;
};

/// Pairs, and the estimate that they give: of the mean difference, or of what the claim says of
/// several sizes. Over sizes `seeds` are those of one size after the other; `a`, `b` and `groups`
/// are empty.
struct Measured : Pairs {
  stats::PairedDifference paired;
  /// Means: of counts those of the counts; of what is compared by ratios geometric ones. None over
  /// sizes.
  double arm_mean = kNone, reference_mean = kNone;
  std::vector<GapAtSize> sizes;  ///< ascending; empty where the claim is of one size
  Index group_count = 0;  ///< groups of held-out documents whose sampling error the interval has
  Index missing = 0;      ///< seeds of the plan that have no pair yet
  std::string failed_control;  ///< what an arm does not show that the claim needs; or empty
};

/// The interval has the spread over seeds: Var / n of the paired differences (or what
/// train/stats/size_trend.h says over sizes). All arms are measured on the same held-out text,
/// which is a sample too. Where all runs stored their loss in each of 64 groups of its documents,
/// the squared standard error of the mean over the groups of what the seeds give together is added;
/// degrees of freedom are those of Welch and Satterthwaite. The spread over groups holds a little
/// of that over seeds, so the interval is rather too wide than too narrow.
Measured measure(const Claim& claim, const ClaimsFile& file,
                 std::span<const RunRecord* const> runs);

}  // namespace difftape::study
