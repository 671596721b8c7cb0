#pragma once
// The words of the configuration for types whose folders know no configuration.

#include "core/engine.h"
#include "core/names.h"

namespace difftape {

template <>
inline constexpr auto kNames<Precision> =
    std::to_array<Named<Precision>>({{"full", Precision::full},
                                     {"bf16", Precision::bf16},
                                     {"bf16_emulated", Precision::bf16_emulated}});

}  // namespace difftape
