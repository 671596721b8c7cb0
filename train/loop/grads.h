#pragma once
// Loss, logits and every gradient of one batch as a file, so that any framework can repeat it.

#include <filesystem>
#include <string>

#include "layers/language_model.h"

namespace difftape {

/// Token sequences of (B, T + 1).
struct TokenBatch {
  Index batch = 0, seq = 0;
  std::vector<std::int32_t> tokens;
};

/// Reads /tokens, int32 (B, T + 1), from an HDF5 file. Throws MissingInput or DataError.
TokenBatch read_token_batch(const std::filesystem::path& path);

/// The model that a user names: an HDF5 file (a checkpoint) with its weights, or a YAML
/// configuration with the initial ones.
struct NamedModel {
  std::unique_ptr<LanguageModel> model;
  std::string config_yaml;
};
NamedModel open_model(const std::filesystem::path& config_or_checkpoint,
                      const std::vector<std::string>& overrides);

/// Forward and backward of one batch; gradients are left in the parameters.
struct LossAndLogits {
  real loss;
  Tensor logits;  // (B, T, V)
};
LossAndLogits forward_backward(LanguageModel& model, const TokenBatch& batch);

/// Writes /loss, /logits, /tokens, /grad/<name>, /model/<name> and the attribute config_yaml.
/// Throws OutputError.
void write_grads(const std::filesystem::path& path, const NamedModel& named,
                 const TokenBatch& batch, const LossAndLogits& result);

}  // namespace difftape
