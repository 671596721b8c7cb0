#pragma once
// The rules that a model configuration must keep to be computed.

#include <string>
#include <vector>

#include "layers/model_config.h"

namespace difftape {

/// A broken rule of a model configuration, with a valid alternative.
struct ModelConflict {
  std::vector<std::string> keys;  ///< such as "model.attention.pairing"
  std::string message;
};

/// Returns the reasons why no model with these settings can be computed, all of them; empty if one
/// can. Settings without effect do not count.
std::vector<ModelConflict> broken_rules(const ModelConfig& config);

/// Returns `config`. Throws ConfigError with all of its broken rules, one per line.
const ModelConfig& require_valid(const ModelConfig& config);

}  // namespace difftape
