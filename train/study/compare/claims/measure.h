#pragma once
// Estimates a claim: a contrast of cells, seed by seed, at one size or over several.

#include <set>
#include <span>
#include <string>
#include <vector>

#include "train/stats/interval.h"
#include "train/study/compare/claims/cells.h"
#include "train/study/compare/claims/claims_file.h"

namespace difftape::study {

/// Minimum number of seeds for a verdict, at each size.
inline constexpr Index kSeedsForVerdict = 3;

/// The contrast at one of several sizes.
struct GapAtSize {
  Index d_model = 0;
  double parameters = kNone;
  Index seeds = 0;
  stats::Interval gap;
};

/// The estimate of a claim with what it is made of. The first half of the terms is the side of the
/// arm, the second half the side of the reference; with four terms each side is a difference.
struct Measured {
  std::string arm, reference;  ///< names of the sides: "v2", "v2 less softmax"
  Seeds seeds;                 ///< one per pair, in the order of the claims file, then of sizes
  std::vector<double> a, b;    ///< values of the sides per pair, on the axis; a - b is the contrast
  std::string where;           ///< "lr 0.001, 0.01", "own lr (v2 0.0123, softmax 0.008)"
  bool stated_before = false;  ///< every run of the pairs recorded this claims file
  stats::PairedDifference paired;
  double arm_mean = kNone, reference_mean = kNone;  ///< mean_from_scale, of a claim about one size
  std::vector<GapAtSize> sizes;                     ///< ascending; empty for a claim about one size
  Index missing = 0;                                ///< planned seeds without a pair
  std::string failed_control;                       ///< the failed condition; empty if all hold
  std::string reason;  ///< why nothing can be compared; there are no pairs then

  Index count() const { return std::ssize(seeds); }
  /// Returns the number of different seeds; over sizes, one seed can have several pairs.
  Index distinct_seeds() const { return std::ssize(std::set(seeds.begin(), seeds.end())); }
};

/// Measures a claim. A seed is one pair: its values at several learning rates are reduced first.
/// The interval covers the spread over seeds. Both runs of a pair read the same held-out text, so
/// the choice of the text hardly adds to it.
Measured measure(const Claim& claim, const ClaimsFile& file, std::span<const Row* const> runs);

}  // namespace difftape::study
