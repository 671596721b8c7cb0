#pragma once
// The runs that a claim is about, its metric in their two arms seed by seed, at one size or over
// several, and the estimate that these numbers give.

#include <fmt/format.h>

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

/// Why a claim has no numbers: "no run of v2 logged attn/sink_rate". It ends the search for them.
struct NoNumbers : std::runtime_error {
  explicit NoNumbers(const std::string& why) : std::runtime_error(why) {}
  template <class... Args>
  NoNumbers(fmt::format_string<Args...> text, Args&&... args)
      : std::runtime_error(fmt::format(text, std::forward<Args>(args)...)) {}
};

/// Returns whether a configuration, read by its keys, matches a claim's `where`.
bool matches(const Regime& where,
             const std::function<std::string(const std::string& key)>& value_of);

/// Runs of one run.arm; none for a number that an arm is compared with.
struct ArmRuns {
  std::string name;
  std::vector<const RunRecord*> runs;
};

/// Returns the arms, of the runs that match `where`, that a name of the file stands for: by their
/// attention, or by their own name. Throws NoNumbers if there are none.
std::vector<ArmRuns> arms_called(const std::string& name, const ClaimsFile& file,
                                 const Regime& where, std::span<const RunRecord* const> runs);

/// Returns the two arms of a claim: of arms found by their attention the first two that differ in
/// nothing else but the size of the MLP (model.match_params). Throws NoNumbers.
std::pair<ArmRuns, ArmRuns> find_arms(const Claim& claim, const ClaimsFile& file,
                                      std::span<const RunRecord* const> runs);

/// Throws NoNumbers if runs of an arm differ in more than learning rate and seed.
void require_one_population(const ArmRuns& arm);

/// Returns whether a run has ended and has one of the seeds, if any are named.
bool counts(const RunRecord& run, const Seeds& seeds);

/// The complete runs of an arm that count for a claim.
struct Selected {
  ArmRuns arm;
  std::vector<double> rates = {};  ///< of each run: optim.lr, or the multiple of the arm's own rate
  double own = kNone;              ///< learning rate of the arm's own; NaN without
};

/// Selects runs of the seeds, at all learning rates or at the arm's own. Throws NoNumbers if none
/// of them has ended, or the arm has no learning rate of its own at this size, or no run at it.
Selected select_runs(const ArmRuns& arm, const Claim& claim, const ClaimsFile& file,
                     const Seeds& seeds);

/// The numbers of two arms by seed; of a claim that compares two differences, the first difference
/// stands for the arm, the second for the reference.
struct Pairs {
  std::string arm, reference;  ///< names of the arms, as the runs have them
  Seeds seeds;                 ///< of the pairs, in the order of the claims file
  std::vector<double> a, b;    ///< of `arm` and `reference`, one number per seed, on the axis
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

/// Finds the pairs among complete runs that match `where`, of `seeds` if there are any. A seed is
/// one pair: its numbers at several learning rates are averaged on the axis. A run without a number
/// is a reason to compare nothing. Throws NoNumbers; `pairs` then has the names of the arms.
void find_pairs(const Claim& claim, const ClaimsFile& file, const Seeds& seeds,
                std::span<const RunRecord* const> runs, Pairs& pairs);

/// The differences at one of several sizes.
struct GapAtSize {
  Index d_model = 0;
  double parameters = kNone;
  Index seeds = 0;
  stats::Interval gap;
};

/// Pairs and their estimate: the mean difference, or the mean or slope over sizes.
struct Measured : Pairs {
  stats::PairedDifference paired;
  double arm_mean = kNone, reference_mean = kNone;  ///< mean_from_scale
  std::vector<GapAtSize> sizes;  ///< ascending; empty where the claim is of one size
  Index group_count = 0;  ///< groups of held-out documents whose sampling error the interval has
  Index missing = 0;      ///< seeds of the plan that have no pair yet
  std::string failed_control;  ///< what an arm does not show that the claim needs; or empty
  std::string reason;          ///< why nothing can be compared; there are no pairs then
};

/// The interval has the spread over seeds and, where all runs stored their loss in groups of
/// held-out documents, the squared standard error over these groups, with the degrees of freedom of
/// Welch and Satterthwaite. The spread over groups holds a little of that over seeds, so the
/// interval is rather too wide than too narrow.
Measured measure(const Claim& claim, const ClaimsFile& file,
                 std::span<const RunRecord* const> runs);

}  // namespace difftape::study
