#pragma once
// What a sweep can decide, before it runs; and how many seeds would decide what is open.

#include <span>
#include <string>

#include "core/real.h"
#include "train/study/compare/claims/verdicts.h"
#include "train/system/text_table.h"

namespace difftape::study {

/// The power at which "how many seeds would decide" is answered.
constexpr double kPower = 0.8;

/// One row a primary or secondary claim for `seeds` seeds, at the level of the worst step of Holm's
/// correction, alpha over the number of primary claims: the smallest difference that is found with
/// power kPower, the power of the claim's own question at the planned effect and the seeds that
/// take it to kPower, and how often the absence of a difference is found if there is none. Of
/// claims without a planned spread in standard deviations of single differences. With looks, at the
/// level of the last one that so many seeds reach. Fewer seeds than planned decide nothing else:
/// power 0.
///
/// Without the claims whose ids are `elsewhere`: other sweeps are about them.
system::Table power_table(const ClaimsFile& file, Index seeds,
                          std::span<const std::string> elsewhere = {});

/// The table and what is to know about it, for a terminal of `width` columns. Says if the file has
/// no primary claims.
std::string power_text(const ClaimsFile& file, Index seeds, std::size_t width,
                       std::span<const std::string> elsewhere = {});

/// Seeds that the file plans: as many as it names, or those of the last look; 0 if it says neither.
Index planned_seeds(const ClaimsFile& file);

/// The fewest seeds, more than there are, that would decide with power kPower if the difference and
/// the spread that were seen are the true ones; 0: more than 1000, or nothing is known.
Index seeds_to_decide(const ClaimResult& result);

}  // namespace difftape::study
