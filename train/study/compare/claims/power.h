#pragma once
// What the seeds of a claims file can decide, before any of them runs.

#include <span>
#include <string>

#include "core/real.h"
#include "train/study/compare/claims/verdicts.h"
#include "train/system/text_table.h"

namespace difftape::study {

/// The power at which "what difference would be found" is answered.
constexpr double kPower = 0.8;

/// One row for each primary or secondary claim with the seeds it plans, or `seeds` where it names
/// none: the half-width of the 95 % interval to expect, the smallest true difference that is found
/// with power kPower, and how often the absence of a difference larger than the margin is found if
/// there is none, at the level of the first step of the correction (first_level). In standard
/// deviations of single differences where no deviation is planned. The error of the held-out text
/// is not in it. "-" for a slope, whose sizes are known from runs alone.
///
/// Without the claims whose ids are `elsewhere`: other sweeps are about them.
system::Table power_table(const ClaimsFile& file, Index seeds,
                          std::span<const std::string> elsewhere = {});

/// The table and what is to know about it, for a terminal of `width` columns. Says if the file has
/// no primary claims.
std::string power_text(const ClaimsFile& file, Index seeds, std::size_t width,
                       std::span<const std::string> elsewhere = {});

}  // namespace difftape::study
