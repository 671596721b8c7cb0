#pragma once
// Where backward adds the gradients of keys and values: to the caller's memory, or, if the work on
// one sequence is cut into parts, to memory of each part.

#include <array>
#include <vector>

#include "core/attention/attention.h"

namespace difftape::attention {

/// Where dK and dV go, and which head is the first to touch a key head or a value head: its
/// diagonal blocks come before any other addition to the same keys, and overwrite them.
struct KeyGradients {
  Tensor dk, dv;
  std::vector<std::array<bool, 2>> first_key, first_value;  ///< of each output head and map
};

/// The caller's gradients, to be overwritten or added to as they say.
KeyGradients own_key_gradients(const HeadMapping& mapping, AttentionGradients& gradients);
/// Zeros in their shapes, to be added to.
KeyGradients part_of_key_gradients(const HeadMapping& mapping, const AttentionGradients& gradients);

/// The caller's gradients = or += the sums of the parts, in their order.
void add_parts(const std::vector<KeyGradients>& parts, AttentionGradients& gradients);

}  // namespace difftape::attention
