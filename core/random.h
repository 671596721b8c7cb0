#pragma once
// Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011, through Random123). A number
// is a function of (seed, stream name, index) alone: no state to save, no order to keep.

#include <cstdint>
#include <string_view>

#include "core/tensor.h"

namespace difftape {

/// All numbers of one purpose, for example the initial values of one parameter.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view name);

  std::uint64_t bits(std::uint64_t index) const;
  /// Uniform on the open interval (0, 1).
  double uniform(std::uint64_t index) const;
  /// Standard normal.
  double normal(std::uint64_t index) const;
  /// Uniform on [0, bound). bound > 0.
  std::uint64_t below(std::uint64_t index, std::uint64_t bound) const;

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
};

/// Fills with N(0, std^2); element i is number i of the stream, rounded from double to `real`.
void fill_normal(Tensor& tensor, const RandomStream& stream, double std);

}  // namespace difftape
