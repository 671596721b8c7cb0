#pragma once
// Selects the runs of a claim, pairs its metric in two arms by seed, at one size or over several,
// and estimates the difference.

#include <fmt/format.h>

#include <functional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "train/stats/interval.h"
#include "train/study/compare/claims/claims_file.h"
#include "train/study/compare/row.h"

namespace difftape::study {

/// Minimum number of seeds for a verdict, at each size.
inline constexpr Index kSeedsForVerdict = 3;

/// Thrown with the reason if a claim cannot be measured: "no run of v2 logged attn/sink_rate".
struct NoNumbers : std::runtime_error {
  explicit NoNumbers(const std::string& why) : std::runtime_error(why) {}
  template <class... Args>
  NoNumbers(fmt::format_string<Args...> text, Args&&... args)
      : std::runtime_error(fmt::format(text, std::forward<Args>(args)...)) {}
};

/// Returns whether a configuration, given as a function of its keys, matches a claim's `where`.
bool matches(const Regime& where,
             const std::function<std::string(const std::string& key)>& value_of);

/// Runs of one run.arm.
struct ArmRuns {
  std::string name;
  std::vector<const Row*> runs;
};

/// Returns the runs of an arm that match `where`. Throws NoNumbers if there are none.
ArmRuns arm_called(const std::string& name, const Regime& where, std::span<const Row* const> runs);

/// Throws NoNumbers if runs of an arm differ in more than learning rate and seed.
void require_one_population(const ArmRuns& arm);

/// Returns whether a run is complete and has one of the seeds; empty `seeds` accept any.
bool counts(const Row& run, const Seeds& seeds);

/// Returns "11..18" for three or more consecutive seeds, else "11, 13".
std::string seeds_text(const Seeds& seeds);

/// The complete runs of an arm that count for a claim.
struct Selected {
  ArmRuns arm;
  std::vector<double> rates = {};  ///< per run: optim.lr, or the multiple of the arm's own rate
  double own = kNone;              ///< the arm's own learning rate; NaN without
};

/// Selects runs of the seeds, at all learning rates or at the arm's own. Throws NoNumbers if none
/// of them is complete, or if the arm lacks its own learning rate at this size, or a run at it.
Selected select_runs(const ArmRuns& arm, const Claim& claim, const ClaimsFile& file,
                     const Seeds& seeds);

/// Values of two arms, paired by seed. In a claim about two differences, the first difference takes
/// the place of the arm and the second one of the reference.
struct Pairs {
  std::string arm, reference;  ///< run.arm of the runs
  Seeds seeds;                 ///< one per pair, in the order of the claims file
  std::vector<double> a, b;    ///< values of `arm` and `reference` per seed, on the axis
  std::string where;           ///< "lr 0.001, 0.01", "own lr (v2 0.0123, softmax 0.008)"
  double parameters = kNone;   ///< of the reference, or of the arm if the reference is a number
  bool stated_before = false;  ///< every run of the pairs recorded this claims file
  std::string diverged{};      ///< two arms of which no run finished; or ""

  Index count() const { return std::ssize(seeds); }
  /// Returns the number of different seeds; over sizes, one seed can have several pairs.
  Index distinct_seeds() const { return std::ssize(std::set(seeds.begin(), seeds.end())); }
  std::vector<double> gaps() const;  ///< a - b
};

/// Finds the pairs among complete runs that match `where`, restricted to `seeds` unless they are
/// empty. A seed is one pair: its values at several learning rates are averaged on the axis. Throws
/// NoNumbers, for example if any run has no value; `pairs` then has the names of the arms.
void find_pairs(const Claim& claim, const ClaimsFile& file, const Seeds& seeds,
                std::span<const Row* const> runs, Pairs& pairs);

/// Difference at one of several sizes.
struct GapAtSize {
  Index d_model = 0;
  double parameters = kNone;
  Index seeds = 0;
  stats::Interval gap;
};

/// Pairs with their estimate: the mean difference, or the mean or slope over sizes.
struct Measured : Pairs {
  stats::PairedDifference paired;
  double arm_mean = kNone, reference_mean = kNone;  ///< mean_from_scale
  std::vector<GapAtSize> sizes;                     ///< ascending; empty for a claim about one size
  Index missing = 0;                                ///< planned seeds without a pair
  std::string failed_control;                       ///< the failed condition; empty if all hold
  std::string reason;  ///< why nothing can be compared; there are no pairs then
};

/// Measures a claim. The interval covers the spread over seeds. Both runs of a pair read the same
/// held-out text, so the choice of the text hardly adds to it.
Measured measure(const Claim& claim, const ClaimsFile& file, std::span<const Row* const> runs);

}  // namespace difftape::study
