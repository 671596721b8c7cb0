#pragma once
// The numbers of two arms of one size, seed by seed.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "train/study/compare/claims/claims_file.h"
#include "train/study/compare/run_record.h"

namespace difftape::study {

/// Without pairs where `reason` says why: "no run of v2 logged attn/sink_rate". Of a claim that
/// compares two differences, the first one stands for the arm, the second for the reference.
struct Pairs {
  std::string arm, reference;  ///< names of the arms, as the runs have them
  Seeds seeds;                 ///< of the pairs, in the order of the claims file
  std::vector<double> a, b;    ///< of `arm` and `reference`, a number a seed, on the axis
  /// Of each pair the difference in each group of held-out documents; empty if a run stored none or
  /// the metric is not a mean over documents.
  std::vector<std::vector<double>> groups;
  std::string where;           ///< "lr 0.01"
  double parameters = kNone;   ///< of the reference, or of the arm where that is a number
  bool stated_before = false;  ///< every run of the pairs knew this claims file
  bool all_diverged = false;   ///< every run of both arms
  std::string reason;          ///< why nothing can be compared

  Index count() const { return std::ssize(seeds); }
  std::vector<double> gaps() const;  ///< a - b
};

/// Uses complete runs, and of them those whose configuration `where` describes, with `seeds` if
/// there are any. With own learning rates each arm counts at its own ones, without the seeds that
/// chose them. A seed is one pair: its numbers at several learning rates are averaged on the axis
/// of the metric. No run is left out because it failed: one without a number is a reason to compare
/// nothing.
Pairs find_pairs(const Claim& claim, const ClaimsFile& file, const Seeds& seeds,
                 std::span<const RunRecord* const> runs);

/// A run's optim.lr is a multiple of its arm's own learning rate if they are as close as this,
/// relatively: a sweep takes lr_star as it is written, and multiplies it.
inline constexpr double kSameRate = 1e-6;

}  // namespace difftape::study
