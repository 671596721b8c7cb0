#pragma once
// Opens a model with its weights by a path that a user gives.

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "layers/language_model.h"
#include "train/run/config/config.h"
#include "train/run/data/prepare/tokenizer.h"

namespace difftape::run {

class Checkpoint;

struct NamedModel {
  Config config;
  std::unique_ptr<LanguageModel> model;
  std::filesystem::path checkpoint;  ///< empty: initial weights
  Index step = 0;                    ///< number of training steps
  nlohmann::json data;               ///< data facts of the checkpoint; null without one
  ModelTokens tokens = {};           ///< of the weights
  /// Selects train.gemm during the lifetime of the object.
  std::unique_ptr<EngineScope> engine = {};
};

/// Returns the tokens on which the model of a checkpoint was trained.
ModelTokens tokens_of(const Checkpoint& weights);

/// Throws UsageError for an override of a key that changes the model of existing weights. Allowed
/// are data.*, train.*, model.max_seq_len, model.rope_theta and model.rope_scaling.*.
void require_keys_beside_the_model(const std::vector<std::string>& overrides);

/// Opens a checkpoint or run directory with its weights, or a YAML configuration with initial
/// weights. For a checkpoint `overrides` are limited by require_keys_beside_the_model. Throws
/// UsageError, MissingInput, DataError and ConfigError.
NamedModel open_model(const std::filesystem::path& where,
                      const std::vector<std::string>& overrides = {});

}  // namespace difftape::run
