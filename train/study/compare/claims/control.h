#pragma once
// Positive controls: what the runs of a study must show before a claim can be tested on them.

#include <span>
#include <string>

#include "train/study/compare/claims/claims_file.h"
#include "train/study/compare/run_record.h"

namespace difftape::study {

/// What an arm does not show that the claim needs; or empty. Says in `reason` if that cannot be
/// told.
std::string failed_control(const Control& control, const ClaimsFile& file, const Claim& claim,
                           std::span<const RunRecord* const> runs, std::string& reason);

}  // namespace difftape::study
