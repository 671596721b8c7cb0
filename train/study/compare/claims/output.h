#pragma once
// Formats the verdicts on claims as text, as a table and as CSV.

#include <span>
#include <string>
#include <vector>

#include "train/study/compare/claims/verdicts.h"
#include "train/study/compare/study.h"
#include "train/system/text_table.h"

namespace difftape::study {

/// Copy of the claims in the directory of a sweep.
constexpr const char* kClaimsCopy = "claims.yaml";

/// Returns the difference with its 95 % interval: "-0.0560 (-0.0610 to -0.0510)", or a ratio "0.74
/// (0.70 to 0.79)".
std::string difference_text(const ClaimResult& result);
/// Returns "24 seeds", or "46 pairs of 24 seeds" for a claim over sizes.
std::string seeds_text(const Measured& found);
/// Returns "v2 1.7388, softmax 1.7948; difference -0.0560 (-0.0610 to -0.0510), 8 seeds at lr 0.01;
/// 99 % interval -0.0640 to -0.0480". The first interval is of 95 %, the second one decides. ""
/// without numbers.
std::string numbers_text(const ClaimResult& result);
/// Returns "supported", "equivalent: no difference larger than 0.01", "inconclusive: 5 of 8 seeds
/// have ended", "exploratory: contradicted" or "not testable here: ...".
std::string verdict_text(const ClaimResult& result);
/// Returns one line per reason with the claims that are not tested: "no arm is named v1: v1_loss,
/// v1_norm". Consecutive seeds are written as ranges, "201..216".
std::vector<std::string> untested(std::span<const ClaimResult> results);
/// Explains all verdicts: corrections, claims changed after the runs, intervals, margins.
std::vector<std::string> claims_notes(const ClaimsFile& file, std::span<const ClaimResult> results);

/// Returns one row per tested claim: claim, source, endpoint, measured, verdict.
system::Table verdict_table(std::span<const ClaimResult> results);
/// Returns the tables of a study for a terminal of `width` columns. With claims, a paragraph per
/// tested claim, the untested claims and the notes follow.
std::string study_text(std::span<const Study> studies, std::size_t width,
                       const JudgedClaims* claims = nullptr);

/// Returns verdicts.csv: one line per claim, numbers with all digits.
std::string verdicts_csv(std::span<const ClaimResult> results);
/// First line of verdicts.csv.
inline constexpr const char* kVerdictsHeader =
    "claim,endpoint,metric,arm,reference,difference,error,degrees,margin,pairs,seeds,verdict,"
    "reason";

}  // namespace difftape::study
