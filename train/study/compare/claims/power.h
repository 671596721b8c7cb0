#pragma once
// What the seeds of a claims file can decide, before any of them runs.

#include <span>
#include <string>
#include <vector>

#include "core/real.h"
#include "train/study/compare/claims/verdicts.h"
#include "train/system/text_table.h"

namespace difftape::study {

/// The power at which "what difference would be found" is answered.
constexpr double kPower = 0.8;

/// What the seeds of a claim can decide at the level of the first step of the correction
/// (first_level), without the error of the held-out text. Differences are in standard deviations of
/// single ones. NaN: not known, as of a slope, whose sizes are known from runs alone.
struct Power {
  std::vector<Index> pairs;   ///< that are planned, at each size
  double half_width = kNone;  ///< of the 95 % interval to expect
  double found = kNone;       ///< the smallest true difference that is found with power kPower
  double of_none = kNone;     ///< how often the absence of one beyond the margin is found
};
/// With the seeds that the claim plans, or `seeds` where it names none.
Power power_of(const Claim& claim, const ClaimsFile& file, Index seeds);

/// One row for each primary or secondary claim, in its own unit where a deviation is planned.
/// Without the claims whose ids are `elsewhere`: other sweeps are about them.
system::Table power_table(const ClaimsFile& file, Index seeds,
                          std::span<const std::string> elsewhere = {});

/// The table and what is to know about it, for a terminal of `width` columns. Says if the file has
/// no primary claims.
std::string power_text(const ClaimsFile& file, Index seeds, std::size_t width,
                       std::span<const std::string> elsewhere = {});

}  // namespace difftape::study
