#pragma once
// The numbers of a claim: which runs it is about, and a quantity in its two arms, seed by seed.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "train/stats/interval.h"
#include "train/study/compare/claims/claims_file.h"
#include "train/study/compare/run_record.h"

namespace difftape::study {

/// What is known of a difference of which a number is only known to lie at an end of the learning
/// rates or beyond.
struct Bound {
  bool may_be_lower = false, may_be_higher = false;

  bool exact() const { return !may_be_lower && !may_be_higher; }
};

/// Without pairs where `reason` says why: "no run of v2 logged attn/sink_rate". Of a claim that
/// compares two differences, the first one is in the place of the arm, the second in that of what
/// it is compared with.
struct Measured {
  std::string arm, reference;        ///< names of the arms, as the runs have them
  std::vector<std::uint64_t> seeds;  ///< of the pairs, in the order of the claims file
  std::vector<double> a, b;          ///< of `arm` and `reference`, a number a seed, on the axis
  stats::PairedDifference paired;    ///< of a and b
  /// Means: of counts those of the counts; of what is compared by ratios geometric ones.
  double arm_mean = kNone, reference_mean = kNone;
  std::string where;           ///< "lr 0.01"
  Index planned = 0;           ///< seeds of the file; 0: as many as there are
  bool stated_before = false;  ///< every run of the pairs knew this claims file
  std::vector<Bound> bounds;   ///< of the pairs; none: all are exact
  std::string reason;          ///< why nothing can be compared
  std::string failed_control;  ///< what an arm does not show that the claim needs; or empty

  /// Of the mean over the first pairs, or over all.
  Bound bound(std::size_t pairs) const;
  Bound bound() const { return bound(a.size()); }
};

/// Uses complete runs, and of them those whose configuration `where` describes. A seed is one
/// pair: its numbers at several learning rates are averaged on the axis of the quantity. No run is
/// left out because it failed: one without a number is a reason to compare nothing.
Measured measure(const Claim& claim, const ClaimsFile& file,
                 std::span<const RunRecord* const> runs);

}  // namespace difftape::study
