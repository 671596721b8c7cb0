#pragma once
// When a repeated number is the recorded one.

#include <bit>
#include <cmath>
#include <cstdint>

namespace difftape::app {

/// Equal bit for bit. All NaN are one: metrics.jsonl does not tell them apart.
inline bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

}  // namespace difftape::app
