#pragma once
// Division of sizes with rounding up.

#include "core/real.h"

namespace difftape {

/// The smallest number of parts of size b > 0 that hold a >= 0.
constexpr Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }
/// The smallest multiple of b > 0 that is at least a >= 0.
constexpr Index round_up(Index a, Index b) { return ceil_div(a, b) * b; }

}  // namespace difftape
