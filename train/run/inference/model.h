#pragma once
// A model that a user names, with its weights.

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "layers/language_model.h"
#include "train/run/config/config.h"
#include "train/run/records/h5.h"

namespace difftape::run {

struct NamedModel {
  Config config;
  std::unique_ptr<LanguageModel> model;
  std::filesystem::path checkpoint;  ///< empty: the weights are initial ones
  Index step = 0;                    ///< that it was trained for
  nlohmann::json data;               ///< what the checkpoint says of the data; null without one
  TokenizerFile tokenizer = {};      ///< of text, or as the checkpoint has it
  /// Of train.gemm, as long as this lives.
  std::unique_ptr<EngineScope> engine = {};
};

/// Throws UsageError for an override of a key other than those of data.* and train.* and those that
/// say how positions are told apart: weights decide what their model is.
void require_keys_beside_the_model(const std::vector<std::string>& overrides);

/// A checkpoint or run directory, with its weights, or a YAML configuration, with the initial ones.
/// Of a checkpoint `overrides` may set what require_keys_beside_the_model lets pass. Throws
/// UsageError, MissingInput, DataError and ConfigError.
NamedModel open_model(const std::filesystem::path& where,
                      const std::vector<std::string>& overrides = {});

}  // namespace difftape::run
