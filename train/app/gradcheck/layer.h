#pragma once
// One attention layer or whole model as a gradient check, at any configuration.

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

}  // namespace difftape::app
