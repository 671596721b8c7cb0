#pragma once
// Which activations a training step keeps for backward, and which it computes again (Chen et al.
// 2016).

#include "core/names.h"

namespace difftape {

enum class ActivationCheckpointing {
  none,   ///< all are kept
  blocks  ///< of each transformer block only the input; backward runs the block once more
};
template <>
inline constexpr auto kNames<ActivationCheckpointing> =
    std::to_array<Named<ActivationCheckpointing>>({{"none", ActivationCheckpointing::none},
                                                   {"blocks", ActivationCheckpointing::blocks}});

}  // namespace difftape
