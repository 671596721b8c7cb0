#pragma once
// Writes loss, logits and every gradient of one batch to a file, for comparison with other
// frameworks.

#include <filesystem>
#include <string>

#include "layers/language_model.h"
#include "train/run/data/dataset.h"
#include "train/run/inference/model.h"

namespace difftape::run {

/// Reads /tokens, int32 (B, T + 1), from an HDF5 file, and /scored, (B, T), if it exists; 0
/// excludes a target. Throws MissingInput or DataError.
Batch read_token_batch(const std::filesystem::path& path);

/// Loss and logits of forward_backward.
struct LossAndLogits {
  real loss;
  Tensor logits;  // (B, T, V)
};
/// Runs forward and backward of one batch and leaves the gradients in the parameters. Matmul
/// operands are rounded to `precision`. If `eos_token_id` is not negative, it separates documents.
/// Throws DataError for tokens outside the vocabulary.
LossAndLogits forward_backward(LanguageModel& model, const Batch& batch, Index eos_token_id,
                               Precision precision = Precision::full);

/// Writes /loss (with its z-loss), /logits, /tokens, /scored if the batch has it, /grad/<name>,
/// /model/<name> and the attribute config_yaml. Throws OutputError.
void write_grads(const std::filesystem::path& path, const NamedModel& named, const Batch& batch,
                 const LossAndLogits& result);

}  // namespace difftape::run
