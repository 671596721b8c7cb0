#pragma once
// Numbers of claims to verdicts. What `decide` does knows no runs: it can be simulated.

#include <span>
#include <string>
#include <vector>

#include "core/names.h"
#include "core/real.h"
#include "train/study/compare/claims/claims_file.h"
#include "train/study/compare/claims/measure.h"
#include "train/system/text_table.h"

namespace difftape::study {

/// What numbers can show of a claim; `not_tested` if there are none.
enum class Finding { supported, contradicted, equivalent, inconclusive, not_testable, not_tested };

/// What the runs show of a claim.
struct Verdict {
  Finding finding = Finding::not_tested;
  bool exploratory = false;  ///< of an exploratory claim, or of one that is treated as such
  std::string reason = {};   ///< why it is not tested or not testable, or decides nothing yet

  bool is_tested() const { return finding != Finding::not_tested; }
  bool is_decided() const { return finding <= Finding::equivalent; }
  /// "supported", "exploratory: equivalent", "not testable here".
  std::string words() const;
};

}  // namespace difftape::study

namespace difftape {

template <>
inline constexpr auto kNames<study::Finding> =
    std::to_array<Named<study::Finding>>({{"supported", study::Finding::supported},
                                          {"contradicted", study::Finding::contradicted},
                                          {"equivalent", study::Finding::equivalent},
                                          {"inconclusive", study::Finding::inconclusive},
                                          {"not testable here", study::Finding::not_testable},
                                          {"not tested", study::Finding::not_tested}});

}  // namespace difftape

namespace difftape::study {

/// The fraction of false ones among exploratory verdicts (Benjamini and Hochberg).
constexpr double kFalseDiscoveryRate = 0.10;

/// A claim with its numbers and its verdict. `p` answers its own question: a difference
/// (two-sided), equivalence within the margin, or none above it. `p_other` is for the opposite
/// finding: equivalence where a difference was expected, a difference beyond the margin otherwise.
/// Primary claims are corrected by joint_holm (train/stats/decision.h), secondary ones at the level
/// of their primary one, exploratory ones by Benjamini and Hochberg within the family.
struct ClaimResult {
  const Claim* claim;
  Measured measured;
  Rank endpoint;  ///< as it is treated: exploratory if runs were made under other claims
  double p = kNone, p_signs = kNone, p_corrected = kNone;
  double p_other = kNone, p_other_corrected = kNone;
  Verdict verdict = {};
  double alpha = kNone;  ///< at or below which a corrected p decides
};

std::vector<ClaimResult> decide(const ClaimsFile& file, std::vector<Measured> measured);

struct JudgedClaims {
  ClaimsFile file;
  std::vector<ClaimResult> results;  ///< of file.claims

  JudgedClaims(ClaimsFile claims, std::span<const RunRecord* const> runs);
  JudgedClaims(const JudgedClaims&) = delete;  // results point into the file
  JudgedClaims& operator=(const JudgedClaims&) = delete;
};

double first_level(const ClaimsFile& file);

/// The power at which "what difference would be found" is answered.
constexpr double kPower = 0.8;

/// What the seeds of a claim can decide at first_level, without the error of the held-out text.
/// Differences are in standard deviations of single ones. NaN: not known before the runs.
struct Power {
  std::vector<Index> pairs;   ///< that are planned, at each size
  double half_width = kNone;  ///< of the 95 % interval to expect
  double found = kNone;       ///< the smallest true difference that is found with power kPower
  double of_none = kNone;     ///< how often the absence of one beyond the margin is found
};
/// With the seeds that the claim plans, or `seeds` where it names none.
Power power_of(const Claim& claim, const ClaimsFile& file, Index seeds);

/// Returns one row per primary or secondary claim whose id is not `elsewhere`, in its own unit
/// where a deviation is planned.
system::Table power_table(const ClaimsFile& file, Index seeds,
                          std::span<const std::string> elsewhere = {});
std::string power_text(const ClaimsFile& file, Index seeds, std::size_t width,
                       std::span<const std::string> elsewhere = {});

}  // namespace difftape::study
