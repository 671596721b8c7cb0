#pragma once
// All that `difftape gradcheck` checks: every op, every attention variant, whole models.

#include <functional>
#include <string>
#include <vector>

#include "autograd/gradcheck/gradcheck.h"
#include "layers/language_model.h"
#include "train/app/gradcheck/variants.h"

namespace difftape::app {

/// Checks the gradient of x (B, T, C) and every parameter of one attention layer. Parameters are
/// drawn so large that no gradient is trivial. Those that are zero or near zero because T is 1 are
/// expected to be just that.
GradcheckResult check_layer(const ModelConfig& config, Index batch, Index seq,
                            const DocumentOffsets& document_offsets = nullptr);

/// Checks the gradient of every parameter of a whole model in the summed loss of (2, 4) tokens
/// below 7.
GradcheckResult check_model(const ModelConfig& config,
                            const DocumentOffsets& document_offsets = nullptr);

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
