#pragma once
// All that `difftape gradcheck` checks: every op, every attention variant, whole models.

#include <functional>
#include <string>
#include <vector>

#include "autograd/gradcheck/gradcheck.h"

namespace difftape::app {

struct GradcheckCase {
  std::string group;  ///< what it proves: "softmax", "layer/diff_v2", "model/diff_v1"
  std::string name;   ///< begins with the group: "layer/diff_v2/gqa/window/rope/qk_norm/d4/T17"
  std::function<GradcheckResult()> run;
};

/// Cases of a group stand together. The layers are a full product: {every attention variant} x
/// {mha, gqa, mqa} x {full, window, packed} x {rope with even, norope with odd heads} x {qk_norm,
/// plain} x {two head sizes} x {T = 1, 2, 3, 17, 64}; V1, which pairs its keys, has no mqa.
std::vector<GradcheckCase> gradcheck_cases();

}  // namespace difftape::app
