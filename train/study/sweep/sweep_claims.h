#pragma once
// What a sweep can say of its claims before any of its runs is trained.

#include <string>
#include <vector>

#include "train/run/config/reader.h"
#include "train/study/compare/claims/claims_file.h"
#include "train/study/sweep/sweep_config.h"

namespace difftape::study {

/// Adds what cannot be decided by these runs, however they end: arms that there are not, arms of
/// different tasks, seeds of which none is trained, and a file none of whose claims is about any of
/// them. `named_at` is where the sweep names the file.
void check_claims(const ClaimsFile& claims, const std::vector<SweepRun>& runs,
                  const run::SourceLocation& named_at, run::ConfigErrors& errors);

/// The ids of claims whose `where` none of the runs matches: they are of other sweeps.
std::vector<std::string> claims_elsewhere(const ClaimsFile& claims,
                                          const std::vector<SweepRun>& runs);

/// How many seeds are trained that count for a claim.
Index seeds_that_count(const ClaimsFile& claims, const std::vector<SweepRun>& runs);

}  // namespace difftape::study
