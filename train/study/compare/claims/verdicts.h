#pragma once
// Turns the measurements of claims into verdicts. `decide` does not depend on runs, so that tests
// can simulate studies.

#include <span>
#include <string>
#include <vector>

#include "core/names.h"
#include "core/real.h"
#include "train/study/compare/claims/claims_file.h"
#include "train/study/compare/claims/measure.h"
#include "train/system/text_table.h"

namespace difftape::study {

/// Possible results for a claim; `not_tested` without numbers.
enum class Finding { supported, contradicted, equivalent, inconclusive, not_testable, not_tested };

/// Result for a claim.
struct Verdict {
  Finding finding = Finding::not_tested;
  bool exploratory = false;  ///< the claim is exploratory or treated as such
  std::string reason = {};   ///< why it is not tested, not testable or inconclusive

  bool is_tested() const { return finding != Finding::not_tested; }
  bool is_decided() const { return finding <= Finding::equivalent; }
  /// Returns "supported", "exploratory: equivalent", "not testable here".
  std::string words() const;
};

constexpr auto names_of(Finding) {
  return std::to_array<Named<Finding>>({{"supported", Finding::supported},
                                        {"contradicted", Finding::contradicted},
                                        {"equivalent", Finding::equivalent},
                                        {"inconclusive", Finding::inconclusive},
                                        {"not testable here", Finding::not_testable},
                                        {"not tested", Finding::not_tested}});
}

/// A claim with its measurement and its verdict.
struct ClaimResult {
  const Claim* claim;
  Measured measured;
  /// Effective endpoint: exploratory if runs were trained under other claims, or if an earlier
  /// claim of its family is not decided.
  Rank endpoint;
  double level;  ///< level_of its file
  Verdict verdict = {};
  stats::Interval interval = {};  ///< of 1 - level, which decides a difference; NaN: not judged
  bool within = false;            ///< the interval of 1 - 2 level lies within the margin
};

/// Returns the verdicts of the claims from where one interval of each lies
/// (train/stats/decision.h). All claims have the same level. Secondary claims count, in order, once
/// the primary claim of their family is decided; testing stops at the first that is not.
std::vector<ClaimResult> decide(const ClaimsFile& file, std::vector<Measured> measured);

struct JudgedClaims {
  ClaimsFile file;
  std::vector<ClaimResult> results;            ///< one per entry of file.claims
  run::DataKind data = run::DataKind::tokens;  ///< text if all runs read text as bytes

  JudgedClaims(ClaimsFile claims, std::span<const Row* const> runs);
  JudgedClaims(const JudgedClaims&) = delete;  // results point into the file
  JudgedClaims& operator=(const JudgedClaims&) = delete;
};

/// Returns alpha / (number of primary claims of the file). Untested claims count, because they will
/// be tested once their seeds have ended, or in another sweep of the same file.
double level_of(const ClaimsFile& file);

/// Power for which the smallest detectable difference is computed.
constexpr double kPower = 0.8;

/// Power of a claim at its level. Differences are in
/// standard deviations of single differences. NaN: unknown before the runs.
struct Power {
  std::vector<Index> pairs;   ///< planned pairs at each size
  double half_width = kNone;  ///< expected half-width of the 95 % interval
  double found = kNone;       ///< the smallest true difference that is found with power kPower
  double of_none = kNone;     ///< power to find that no difference exceeds the margin
};
/// Returns the power for the planned seeds, or for `seeds` if the claim has none.
Power power_of(const Claim& claim, const ClaimsFile& file, Index seeds);

/// Returns one row per primary or secondary claim whose id is not in `elsewhere`. Values are in the
/// unit of the claim if it has a planned deviation. `data` gives the unit of losses.
system::Table power_table(const ClaimsFile& file, Index seeds,
                          std::span<const std::string> elsewhere = {},
                          run::DataKind data = run::DataKind::tokens);
std::string power_text(const ClaimsFile& file, Index seeds, std::size_t width,
                       std::span<const std::string> elsewhere = {},
                       run::DataKind data = run::DataKind::tokens);

}  // namespace difftape::study
