#pragma once
// Combinations of the keys of a model that are invalid, each with what to write instead.

#include <string>
#include <vector>

#include "layers/model_config.h"

namespace difftape::run {

/// An invalid combination: the keys that make it, and what to write instead.
struct ConfigConflict {
  std::vector<std::string> keys;  ///< such as "model.attention.pairing"
  std::string message;
};
/// Those of the scaling of RoPE.
std::vector<ConfigConflict> rope_errors(const ModelConfig& config);
/// Those of the fields of attention.
std::vector<ConfigConflict> attention_errors(const ModelConfig& config);

/// Why this model cannot be built, for example because its heads make no pairs; empty if it can.
std::string unsupported_reason(const ModelConfig& model);

}  // namespace difftape::run
