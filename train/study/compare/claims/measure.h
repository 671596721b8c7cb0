#pragma once
// The numbers of a claim: a metric in its two arms seed by seed, at one size or over several, and
// what they add up to.

#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "train/stats/interval.h"
#include "train/study/compare/claims/claims_file.h"
#include "train/study/compare/run_record.h"

namespace difftape::study {

/// Fewer seeds, at one size or at any of several, decide nothing.
inline constexpr Index kSeedsForVerdict = 3;

/// Of a claim that compares two differences, the first one stands for the arm, the second for the
/// reference.
struct Pairs {
  std::string arm, reference;  ///< names of the arms, as the runs have them
  Seeds seeds;                 ///< of the pairs, in the order of the claims file
  std::vector<double> a, b;    ///< of `arm` and `reference`, a number a seed, on the axis
  /// Of each pair the difference in each group of held-out documents; empty if a run stored none or
  /// the metric is not a mean over documents.
  std::vector<std::vector<double>> groups;
  std::string where;           ///< "lr 0.001, 0.01", "own lr (v2 0.0123, softmax 0.008)"
  double parameters = kNone;   ///< of the reference, or of the arm where that is a number
  bool stated_before = false;  ///< every run of the pairs knew this claims file
  bool all_diverged = false;   ///< every run of both arms

  Index count() const { return std::ssize(seeds); }
  std::vector<double> gaps() const;  ///< a - b
};

/// Uses complete runs, and of them those whose configuration `where` describes, with `seeds` if
/// there are any. With own learning rates each arm counts at its own ones, without the seeds that
/// chose them. A seed is one pair: its numbers at several learning rates are averaged on the axis
/// of the metric. No run is left out because it failed: one without a number is a reason to compare
/// nothing. Throws NoNumbers; `pairs` then has the names of the arms, if they are there.
void find_pairs(const Claim& claim, const ClaimsFile& file, const Seeds& seeds,
                std::span<const RunRecord* const> runs, Pairs& pairs);

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
  std::string reason;          ///< why nothing can be compared; there are no pairs then
};

/// The interval has the spread over seeds: Var / n of the paired differences (or what
/// train/stats/size_trend.h says over sizes). All arms are measured on the same held-out text,
/// which is a sample too. Where all runs stored their loss in each of 64 groups of its documents,
/// the squared standard error of the mean over the groups of what the seeds give together is added;
/// degrees of freedom are those of Welch and Satterthwaite. The spread over groups holds a little
/// of that over seeds, so the interval is rather too wide than too narrow.
Measured measure(const Claim& claim, const ClaimsFile& file,
                 std::span<const RunRecord* const> runs);

/// Why a claim has no numbers: "no run of v2 logged attn/sink_rate". It ends the search for them.
struct NoNumbers : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Whether a configuration, read by its keys, is what a claim's `where` says.
bool matches(const Regime& where,
             const std::function<std::string(const std::string& key)>& value_of);

/// Runs of one run.arm; or a number that an arm is compared with, which has none.
struct ArmRuns {
  std::string name;
  std::vector<const RunRecord*> runs;
};

/// The arms, of the runs that `where` means, that a name of the file stands for: by their
/// attention, or by their own name. Throws NoNumbers if there are none.
std::vector<ArmRuns> arms_called(const std::string& name, const ClaimsFile& file,
                                 const Regime& where, std::span<const RunRecord* const> runs);

/// The two arms of a claim. Of arms that are found by their attention the first two that differ in
/// nothing else; the size of the MLP may differ (model.match_params). Of a claim against a number
/// the second has no runs. Throws NoNumbers.
std::pair<ArmRuns, ArmRuns> find_arms(const Claim& claim, const ClaimsFile& file,
                                      std::span<const RunRecord* const> runs);

/// Throws NoNumbers if runs of an arm are no samples of one population, since they differ in more
/// than learning rate and seed.
void require_one_population(const ArmRuns& arm);

/// Whether a run has one of the seeds, or none is named, and has ended.
bool counts(const RunRecord& run, const Seeds& seeds);

/// The complete runs of an arm that count for a claim.
struct Selected {
  ArmRuns arm;
  std::vector<double> rates = {};  ///< of each run: optim.lr, or the multiple of the arm's own rate
  double own = kNone;              ///< learning rate of the arm's own; NaN without
};

/// Those of the seeds, at all learning rates or at the arm's own. Throws NoNumbers if no run of
/// these seeds has ended, the arm has no learning rate of its own at this size, or no run at it.
Selected select_runs(const ArmRuns& arm, const Claim& claim, const ClaimsFile& file,
                     const Seeds& seeds);

}  // namespace difftape::study
