#pragma once
// Which token follows, drawn from the logits of a model.

#include <cstdint>
#include <span>

#include "core/random.h"
#include "core/real.h"

namespace difftape::run {

/// Applied in this order. What is left out has probability 0, the rest is drawn in proportion.
struct Sampling {
  double temperature = 1;  ///< logits are divided by it; 0: always the likeliest token
  Index top_k = 0;         ///< the so many likeliest tokens; 0: all
  /// The likeliest tokens that together have this probability (Holtzman et al. 2020, "nucleus").
  double top_p = 1;
  /// Tokens of this share of the largest probability or more (Nguyen et al. 2024, "min-p").
  double min_p = 0;
};

/// Draws one of the tokens [0, logits.size()) by the number `u` in (0, 1). Of equal logits the
/// first is the likeliest. Throws DataError if a logit is not finite.
std::int32_t sample(std::span<const real> logits, const Sampling& sampling, double u);

}  // namespace difftape::run
