#pragma once
// The size of the gradient, and clipping to it. Work over all gradients is cut into blocks of fixed
// size, so that one parallel loop serves many small parameters and no result depends on the number
// of threads; sums are taken in double.

#include <vector>

#include "autograd/parameter.h"
#include "optim/shards.h"

namespace difftape {

/// Consecutive elements [begin, begin + count) of one parameter.
struct GradientBlock {
  size_t parameter;  ///< position in the ParameterSet
  Index begin, count;
};

/// The blocks of every parameter, in order. Throws std::logic_error if a parameter has no
/// gradient: an optimiser step without a backward pass would reuse a stale one.
std::vector<GradientBlock> gradient_blocks(const ParameterSet& parameters);

/// L2 norms of the gradients; NaN or infinite if an element is.
struct GradNorms {
  double global = 0;                  ///< over all elements of all parameters
  std::vector<double> per_parameter;  ///< in the order of the parameters
};
/// Every parameter must have a gradient (std::logic_error). With shards every process must call it,
/// of the gradients of owners; it is the same in all.
GradNorms grad_norms(const ParameterSet& parameters, const Shards& shards = {});

/// Factor that brings a gradient of the given finite norm to at most `max_grad_norm`, as PyTorch's
/// clip_grad_norm_ has it: min(1, max_grad_norm / (norm + 1e-6)). max_grad_norm 0: always 1.
double clip_scale(double norm, double max_grad_norm);

/// Where a NaN or infinity came in: the first parameter, in the order of declaration, whose value
/// is not finite; else the last one whose gradient is not, which the backward pass reached first;
/// else null. With shards as grad_norms.
const Parameter* first_non_finite(const ParameterSet& parameters, const Shards& shards = {});

}  // namespace difftape
