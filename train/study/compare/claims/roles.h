#pragma once
// Which arm of a study plays which part in the claims, found by the fields of its attention.

#include <string>
#include <string_view>

#include "train/study/compare/study.h"

namespace difftape::study {

enum class ArmRole { softmax, v1, v2, cross_group, no_sigmoid, no_lambda, v1_no_norm };

/// "V2 (kind diff_v2)": what an arm must be.
std::string_view role_words(ArmRole role);

/// Two arms that differ in attention alone, or in words why there are none.
struct ArmPair {
  const Arm* arm = nullptr;
  const Arm* against = nullptr;
  std::string reason = {};
};

/// The first arms with the attention of these roles whose other keys are equal; the size of the
/// MLP may differ (model.match_params). The study's baseline comes first, where it fits.
ArmPair find_pair(const Study& study, ArmRole role, ArmRole against);

}  // namespace difftape::study
