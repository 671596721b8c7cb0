#pragma once
// The one rule for initial values, the same for every variant (GPT-2, Radford et al. 2019).

#include <cmath>

#include "core/real.h"

namespace difftape {

/// Standard deviation of projections and embeddings.
inline constexpr double kProjectionStd = 0.02;
/// Standard deviation of V1's lambda vectors (Ye et al. 2024).
inline constexpr double kLambdaStd = 0.1;
/// Standard deviation of the two projections of a block that write to the residual stream.
inline double residual_std(Index num_layers) {
  return kProjectionStd / std::sqrt(2.0 * static_cast<double>(num_layers));
}

}  // namespace difftape
