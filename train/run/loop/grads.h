#pragma once
// Loss, logits and every gradient of one batch as a file, so that any framework can repeat it.

#include <filesystem>
#include <string>

#include "layers/language_model.h"
#include "train/run/data/dataset.h"
#include "train/run/inference/model.h"

namespace difftape::run {

/// Reads /tokens, int32 (B, T + 1), from an HDF5 file, and, if it is there, /scored, (B, T), 0 for
/// a target that does not count. Throws MissingInput or DataError.
Batch read_token_batch(const std::filesystem::path& path);

/// Forward and backward of one batch, which data.eos_token_id may cut into documents; gradients
/// are left in the parameters. Products round their operands to `precision`. Throws DataError for
/// tokens the model does not know.
struct LossAndLogits {
  real loss;
  Tensor logits;  // (B, T, V)
};
LossAndLogits forward_backward(LanguageModel& model, const Batch& batch, Index eos_token_id,
                               Precision precision = Precision::full);

/// Writes /loss (with its z-loss), /logits, /tokens, /scored if the batch has it, /grad/<name>,
/// /model/<name> and the attribute config_yaml. Throws OutputError.
void write_grads(const std::filesystem::path& path, const NamedModel& named, const Batch& batch,
                 const LossAndLogits& result);

}  // namespace difftape::run
