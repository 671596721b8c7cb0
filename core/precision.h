#pragma once
// The precision to which a matrix product rounds its operands.

namespace difftape {

/// Products are summed as `real` in any case. bfloat16 (Micikevicius et al. 2018) is multiplied by
/// special units of the processor. Emulated, it is multiplied as `real`, with the same rounding on
/// every machine.
enum class Precision {
  full,  ///< nothing is rounded
  bf16,
  bf16_emulated,
};

}  // namespace difftape
