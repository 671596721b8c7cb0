#pragma once
// The same model with different kinds of attention.

#include <string>
#include <vector>

#include "layers/model_config.h"

namespace difftape {

/// The kind that the others are compared with.
std::string baseline_kind();

/// `model` with another kind of attention, which is then the preset of that kind with the model's
/// qk_norm and window. The kind that the model has already keeps all its fields.
ModelConfig with_kind(const ModelConfig& model, const std::string& kind);

/// Why this model cannot be built, for example because its heads make no pairs; empty if it can.
std::string obstacle_to(const ModelConfig& model);

/// Throws UsageError about --kinds unless all are in attention_kinds(), each once.
void require_kinds(const std::vector<std::string>& kinds);

}  // namespace difftape
