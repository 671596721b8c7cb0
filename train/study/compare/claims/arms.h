#pragma once
// Which runs of a study a claim is about: the arms it names, within its regime.

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "train/study/compare/claims/claims_file.h"
#include "train/study/compare/run_record.h"

namespace difftape::study {

/// Runs of one run.arm.
struct ArmRuns {
  std::string name;
  std::vector<const RunRecord*> runs;  ///< at least one
};

/// The arms within a regime that a name of the file stands for: by their attention, or by their own
/// name. Says in `reason` why there are none.
std::vector<ArmRuns> arms_called(const std::string& name, const ClaimsFile& file,
                                 const Regime& regime, std::span<const RunRecord* const> runs,
                                 std::string& reason);

/// The two arms of a claim. Of arms that are found by their attention the first two that differ in
/// nothing else; the size of the MLP may differ (model.match_params). Says in `reason` why there
/// are none.
std::optional<std::pair<ArmRuns, ArmRuns>> find_arms(const Claim& claim, const ClaimsFile& file,
                                                     std::span<const RunRecord* const> runs,
                                                     std::string& reason);

/// Why numbers of the two runs do not compare: other data, length or batch. Empty if they do.
std::string task_difference(const RunRecord& a, const RunRecord& b);
/// " (they differ in train.steps)", for runs that were to be one sample; or "".
std::string config_difference(const RunRecord& a, const RunRecord& b);

}  // namespace difftape::study
