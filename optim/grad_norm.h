#pragma once
// Gradient norms and clipping. Gradients are cut into blocks of fixed size, so that one parallel
// loop serves many small parameters and no result depends on threads. Sums are in double.

#include <vector>

#include "autograd/parameter.h"
#include "optim/shards.h"

namespace difftape {

/// Consecutive elements [begin, begin + count) of one parameter.
struct GradientBlock {
  size_t parameter;  ///< position in the ParameterSet
  Index begin, count;
};

/// Returns the blocks of every parameter, in order. Throws std::logic_error if a parameter has no
/// gradient: an optimizer step without backward would reuse a stale one.
std::vector<GradientBlock> gradient_blocks(const ParameterSet& parameters);

/// L2 norms of gradients; NaN or infinite if an element is.
struct GradNorms {
  double global = 0;                  ///< over all elements of all parameters
  std::vector<double> per_parameter;  ///< in order of parameters
};
/// Throws std::logic_error if a parameter has no gradient. With shards every process must call it;
/// it reduces the gradients of owners and returns the same on all.
GradNorms grad_norms(const ParameterSet& parameters, const Shards& shards = {});

/// Returns the clipping factor of PyTorch's clip_grad_norm_, min(1, max_grad_norm / (norm + 1e-6)),
/// for a finite norm; 1 if max_grad_norm is 0.
double clip_scale(double norm, double max_grad_norm);

/// Locates the origin of a NaN or infinity: the first parameter with a non-finite value; else the
/// last one with a non-finite gradient, which backward reached first; else null. With shards every
/// process must call it.
const Parameter* first_non_finite(const ParameterSet& parameters, const Shards& shards = {});

}  // namespace difftape
