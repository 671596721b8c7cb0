#pragma once
// Which runs of a study a claim is about: the arms it names, what its `where` says, its seeds and
// the learning rates that count.

#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "train/study/compare/claims/claims_file.h"
#include "train/study/compare/run_record.h"

namespace difftape::study {

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
