#pragma once
// Which combinations of attention fields are invalid.

#include <string>
#include <vector>

#include "layers/model_config.h"

namespace difftape {

/// An invalid combination: the keys that make it, and what to write instead.
struct ConfigConflict {
  std::vector<std::string> keys;  ///< such as "model.attention.pairing"
  std::string message;
};
std::vector<ConfigConflict> attention_errors(const ModelConfig& config);

}  // namespace difftape
