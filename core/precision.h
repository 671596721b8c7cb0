#pragma once
// The precision to which a matrix product rounds its operands.

#include "core/names.h"

namespace difftape {

/// Products are summed as `real` in any case. bfloat16 (Micikevicius et al. 2018) is multiplied by
/// special units of the processor, which take subnormals for 0. Emulated, it is multiplied by loops
/// with the same bits on every processor.
enum class Precision {
  full,  ///< nothing is rounded
  bf16,
  bf16_emulated,
};
constexpr auto names_of(Precision) {
  return std::to_array<Named<Precision>>({{"full", Precision::full},
                                          {"bf16", Precision::bf16},
                                          {"bf16_emulated", Precision::bf16_emulated}});
}

}  // namespace difftape
