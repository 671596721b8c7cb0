#pragma once
// Tokens, and those that follow them.

#include "tests/support/test.h"

namespace difftape {

inline const std::vector<std::int32_t> kTokens{1, 2, 3, 4, 5, 6, 7, 8},
    kTargets{2, 3, 4, 5, 6, 7, 8, 9};

}  // namespace difftape
