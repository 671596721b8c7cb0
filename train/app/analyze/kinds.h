#pragma once
// The same model with different kinds of attention.

#include <string>
#include <vector>

#include "layers/model_config.h"

namespace difftape::app {

/// The kind that the others are compared with.
std::string baseline_kind();

/// The name, beside those of the kinds, of attention as the configuration has it.
inline constexpr const char* kConfigured = "configured";

/// What the configuration's own attention is called: its kind, or kConfigured if fields that are
/// set beside the kind make it another variant.
std::string name_of_configured(const ModelConfig& model);

/// `model` with the preset of a kind and what no kind decides as it is (plain_kind of
/// layers/attention/kinds.h); for kConfigured the model as it is.
ModelConfig with_kind(const ModelConfig& model, const std::string& kind);

/// Throws UsageError about --kinds unless all are in attention_kinds() or kConfigured, each once.
void require_kinds(const std::vector<std::string>& kinds);

}  // namespace difftape::app
