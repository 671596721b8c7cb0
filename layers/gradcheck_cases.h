#pragma once
// All that `difftape gradcheck` checks: every op, every attention variant, whole models.

#include <functional>
#include <string>
#include <vector>

#include "autograd/gradcheck/gradcheck.h"

namespace difftape {

struct GradcheckCase {
  std::string name;  ///< "softmax", "attention/gqa", "layer/diff_v2/gqa", "model/diff_v1"
  std::function<GradcheckResult()> run;
};

std::vector<GradcheckCase> gradcheck_cases();

}  // namespace difftape
