#pragma once
// Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011, through Random123). A number
// depends only on (seed, stream name, index): there is no state to save and no order to keep.

#include <cstdint>
#include <string_view>

#include "core/tensor.h"

namespace difftape {

/// The random numbers of one purpose, for example to initialize one parameter.
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

/// A random permutation of 0, ..., size - 1 that is computed, not stored: constant memory, random
/// access, constant expected time. A Feistel network maps 2 h bits, halves L and R, in eight rounds
/// (L, R) <- (R, L xor f_round(R)) with f Philox and h the least with size <= 4^h. It is one-to-one
/// for any f, and pseudorandom if f is (Luby & Rackoff 1988, "How to construct pseudorandom
/// permutations from pseudorandom functions"). A result that is not below size goes through the
/// network again ("cycle walking", Black & Rogaway 2002, "Ciphers with arbitrary finite domains",
/// section 3), fewer than four times on average.
class RandomPermutation {
 public:
  RandomPermutation(std::uint64_t size, std::uint64_t seed, std::string_view name);

  /// Returns element i of the permutation. i < size.
  std::uint64_t operator()(std::uint64_t i) const;

 private:
  std::uint64_t network(std::uint64_t i) const;

  std::uint64_t size_;
  int half_bits_;  ///< h
  RandomStream round_;
};

/// Fills with N(0, std^2): element i is number i of the stream, rounded from double to `real`.
void fill_normal(Tensor& tensor, const RandomStream& stream, double std);

}  // namespace difftape
