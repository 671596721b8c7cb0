#pragma once
// The published claims about differential attention, what would support each, and the arms of a
// study that each is about, found by the fields of their attention.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/study/compare/quantities.h"
#include "train/study/compare/study.h"

namespace difftape::study {

enum class ArmRole { softmax, v1, v2, cross_group, no_sigmoid, no_lambda, v1_no_subln };

/// Two arms that differ in attention alone, or in words why there are none.
struct ArmPair {
  const Arm* arm = nullptr;
  const Arm* against = nullptr;
  std::string reason = {};
};

/// The first arms with the attention of these roles whose other keys are equal; the size of the
/// MLP may differ (model.match_params). The study's baseline comes first, where it fits.
ArmPair find_pair(const Study& study, ArmRole role, ArmRole against);

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
  const char* if_supported = "";      ///< printed after the verdict; of a claim on which the
                                      ///< sources disagree, the one that holds
  const char* if_not_supported = "";  ///< the same for the other verdict
  /// The published difference, if the claim has one: measured_words says whether the interval holds
  /// some of it. The verdict is about the direction alone.
  double published_low = 0, published_high = 0;
};
/// To add one: an entry in claims.cpp, and for what is not measured yet, a Quantity.
std::span<const Claim> claims();

}  // namespace difftape::study
