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

/// A random order of 0, ..., size - 1 that is computed, not stored: any number of it in any order,
/// in constant memory and expected time. size > 0. A Feistel network turns a number of 2 h bits,
/// halves L and R, into another in eight rounds (L, R) <- (R, L xor f_round(R)), which is one to
/// one whatever f is, and as good as random if f is (Luby & Rackoff 1988, "How to construct
/// pseudorandom permutations from pseudorandom functions"); f is Philox. h is the least with size
/// <= 4^h. A result that is not below size goes through the network again until one is ("cycle
/// walking", Black & Rogaway 2002, "Ciphers with arbitrary finite domains", section 3): fewer than
/// four times on average, and still one to one.
class RandomPermutation {
 public:
  RandomPermutation(std::uint64_t size, std::uint64_t seed, std::string_view name);

  /// The number at place i. i < size.
  std::uint64_t operator()(std::uint64_t i) const;

 private:
  std::uint64_t network(std::uint64_t i) const;

  std::uint64_t size_;
  int half_bits_;  ///< h
  RandomStream round_;
};

/// Fills with N(0, std^2); element i is number i of the stream, rounded from double to `real`.
void fill_normal(Tensor& tensor, const RandomStream& stream, double std);

}  // namespace difftape
