#pragma once
// The published claims about differential attention, and what would support each.

#include <span>
#include <vector>

#include "train/study/compare/claims/roles.h"
#include "train/study/compare/quantities.h"

namespace difftape::study {

/// What a claim says of an arm beside another. `equal` is never proven: a difference can only
/// contradict it. `not_higher` is contradicted by a higher number alone; a lower one supports it.
enum class Expected { lower, higher, equal, not_higher };

struct ClaimTest {
  const Quantity* quantity;
  ArmRole arm, against;
  Expected expected;
};

struct Claim {
  const char* id;
  const char* sentence;
  const char* source;
  std::vector<ClaimTest> tests;
  const char* if_supported = "";      ///< said behind the verdict, where the claim is two against
  const char* if_not_supported = "";  ///< each other
  /// The published difference, if the claim has one: measured_words says whether the interval holds
  /// some of it. The verdict is about the direction alone.
  double published_low = 0, published_high = 0;
};
/// To add one: an entry in claims.cpp, and for what is not measured yet, a Quantity.
std::span<const Claim> claims();

}  // namespace difftape::study
