#pragma once
// How work over all gradients is cut: into blocks of fixed size, so that one parallel loop serves
// many small parameters and no result depends on the number of threads.

#include <vector>

#include "autograd/parameter.h"

namespace difftape {

/// Consecutive elements [begin, begin + count) of one parameter.
struct GradientBlock {
  size_t parameter;  ///< position in the ParameterSet
  Index begin, count;
};

/// The blocks of every parameter, in order. Throws std::logic_error if a parameter has no
/// gradient: an optimiser step without a backward pass would reuse a stale one.
std::vector<GradientBlock> gradient_blocks(const ParameterSet& parameters);

}  // namespace difftape
