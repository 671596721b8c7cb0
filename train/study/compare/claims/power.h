#pragma once
// What a sweep can decide, before it runs.

#include <string>

#include "core/real.h"

#include "train/study/compare/claims/claims_file.h"
#include "train/system/text_table.h"

namespace difftape::study {

/// One row a primary or secondary claim for `seeds` seeds, at the level of the worst step of Holm's
/// correction, alpha over the number of primary claims: the smallest difference that is found with
/// power 0.8, the power at the planned effect, how often equivalence within the margin is found if
/// there is no difference, and the seeds that the planned effect takes for a power of 0.8. Of
/// claims without a planned spread in standard deviations of single differences. With looks, as if
/// all seeds were looked at once, which differs little.
system::Table power_table(const ClaimsFile& file, Index seeds);

/// The table and what is to know about it, for a terminal of `width` columns. Says if the file has
/// no primary claims.
std::string power_text(const ClaimsFile& file, Index seeds, std::size_t width);

/// Seeds that the file plans: as many as it names, or those of the last look; 0 if it says neither.
Index planned_seeds(const ClaimsFile& file);

}  // namespace difftape::study
