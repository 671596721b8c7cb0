#pragma once
// What the claims come to, in words, as a table and as CSV.

#include <span>
#include <string>
#include <vector>

#include "train/study/compare/claims/evaluate.h"
#include "train/system/text_table.h"

namespace difftape::study {

/// The numbers of a claim in words; "-" where there are none.
std::string measured_words(const ClaimResult& result);
/// The verdict with its reason. A claim of "no more than" that is not significant is said to be not
/// contradicted.
std::string verdict_text(const ClaimResult& result);

/// One row a claim: claim, source, measured, verdict.
system::Table verdict_table(std::span<const ClaimResult> results);

/// For the terminal: claims with a verdict in a paragraph each, the others by reason.
std::string claims_text(std::span<const ClaimResult> results, std::size_t width);
/// Tables and claims for a terminal of `width` columns, with a newline at the end.
std::string study_text(const Study& study, std::size_t width);

/// verdicts.csv: one line a test, numbers with all digits, empty where there is none. Differences
/// and noise floors of ratios (scale "log") are those of logarithms.
std::string verdicts_csv(std::span<const ClaimResult> results);
/// Its first line.
extern const char* const kVerdictsHeader;

}  // namespace difftape::study
