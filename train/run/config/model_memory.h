#pragma once
// The memory of a model by arithmetic on its sizes, before anything is built.

#include <cstdint>
#include <optional>
#include <string>

#include "layers/model_config.h"

namespace difftape::run {

/// Returns the bytes of the weights of a model and of their gradients. It takes no time for any
/// sizes.
double model_bytes(const ModelConfig& model);

/// Returns the keys to lower for a model with fewer parameters, with the most effective ones first:
/// "model.d_ff, model.num_layers or model.d_model".
std::string sizes_to_lower(const ModelConfig& model);

/// Throws ConfigError with a remedy if the model of `where`, a file, needs more than `free` bytes.
/// Does nothing if `free` is unknown.
void require_model_memory(const ModelConfig& model, const std::string& where,
                          std::optional<std::uint64_t> free);

}  // namespace difftape::run
