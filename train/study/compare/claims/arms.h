#pragma once
// Which runs of a study a claim is about: the arms it names, and what its 'where' says.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "train/study/compare/claims/claims_file.h"
#include "train/study/compare/run_record.h"

namespace difftape::study {

/// Whether a configuration, read by its keys, is what a claim's `where` says.
bool matches(const Regime& where,
             const std::function<std::string(const std::string& key)>& value_of);

/// Runs of one run.arm; or a number that an arm is compared with, which has none.
struct ArmRuns {
  std::string name;
  std::vector<const RunRecord*> runs;
};

/// The arms, of the runs that `where` means, that a name of the file stands for: by their
/// attention, or by their own name. Says in `reason` why there are none.
std::vector<ArmRuns> arms_called(const std::string& name, const ClaimsFile& file,
                                 const Regime& where, std::span<const RunRecord* const> runs,
                                 std::string& reason);

/// The two arms of a claim. Of arms that are found by their attention the first two that differ in
/// nothing else; the size of the MLP may differ (model.match_params). Of a claim against a number
/// the second has no runs. Says in `reason` why there are none.
std::optional<std::pair<ArmRuns, ArmRuns>> find_arms(const Claim& claim, const ClaimsFile& file,
                                                     std::span<const RunRecord* const> runs,
                                                     std::string& reason);

/// Why runs of an arm are no samples of one population, since they differ in more than learning
/// rate and seed; empty if they are.
std::string mixture(const ArmRuns& arm);

}  // namespace difftape::study
