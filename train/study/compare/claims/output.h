#pragma once
// What the claims come to, in words, as a table and as CSV.

#include <span>
#include <string>
#include <vector>

#include "train/study/compare/claims/verdicts.h"
#include "train/study/compare/study.h"
#include "train/system/text_table.h"

namespace difftape::study {

/// The claims copied beside the runs of a sweep that is to decide them.
constexpr const char* kClaimsCopy = "claims.yaml";

/// "-0.0560 (-0.0610 to -0.0510)", a ratio "0.74 (0.70 to 0.79)", with its 95 % interval.
std::string difference_text(const ClaimResult& result);
/// "v2 1.7388, softmax 1.7948; difference -0.0560 (-0.0610 to -0.0510), 8 seeds at lr 0.01; p
/// 0.0002, corrected 0.0012, by signs 0.0078", with its 95 % interval; "" without numbers.
std::string numbers_text(const ClaimResult& result);
/// "supported", "equivalent: no difference larger than 0.01", "inconclusive: 5 of 8 seeds have
/// ended", "exploratory: contradicted", "not testable here: ...".
std::string verdict_text(const ClaimResult& result);
/// The claims that are not tested, by reason: "no arm is called v1: v1_loss, v1_norm", a line each.
std::vector<std::string> untested(std::span<const ClaimResult> results);
/// Explains all verdicts: corrections, claims changed after the runs, intervals, margins.
std::vector<std::string> claims_notes(const ClaimsFile& file, std::span<const ClaimResult> results);

/// One row a claim that is tested: claim, source, endpoint, measured, verdict.
system::Table verdict_table(std::span<const ClaimResult> results);
/// The tables of a study for a terminal of `width` columns, and if there are claims a paragraph for
/// each that is tested, then the untested ones and the notes.
std::string study_text(const Study& study, std::size_t width, const JudgedClaims* claims = nullptr);

/// verdicts.csv: one line per claim, numbers with all digits.
std::string verdicts_csv(std::span<const ClaimResult> results);
/// Its first line.
inline constexpr const char* kVerdictsHeader =
    "claim,family,endpoint,treated_as,metric,scale,arm,reference,over,arm_mean,reference_mean,"
    "difference,half_width,degrees,margin,seeds,p_difference,p_difference_corrected,p_equivalence,"
    "p_equivalence_corrected,p_signs,verdict,interval_of,reason";

}  // namespace difftape::study
