#pragma once
// Export of a model to files of other programs, and import from them.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/names.h"
#include "train/run/exchange/safetensors.h"
#include "train/run/inference/model.h"

namespace difftape::run {

/// Order of the rows in weight tensors.
enum class WeightLayout { difftape, hf };

constexpr auto names_of(WeightLayout) {
  using enum WeightLayout;
  return std::to_array<Named<WeightLayout>>({{"difftape", difftape}, {"hf", hf}});
}

/// A tokenizer without its model.
struct TokenizerName {
  std::string name;    ///< "bytes", or the name of the SentencePiece file
  std::string digest;  ///< XXH3 of the SentencePiece file; empty for bytes
};

/// The metadata of a file that difftape exported.
struct Provenance {
  WeightLayout layout = WeightLayout::difftape;
  Config config;
  Index step = 0;
  nlohmann::json data;  ///< facts of the training data; null if untrained or trained elsewhere
  std::optional<TokenizerName> tokenizer = {};  ///< nothing if it is unknown
};

/// Returns the metadata for the weights of a model in a layout.
safetensors::Metadata to_metadata(const NamedModel& named, WeightLayout layout);

/// Returns the metadata of a file, nothing if difftape did not write it. `overrides` may set keys
/// of data.* and train.*. Throws DataError if an entry is missing or malformed, ConfigError.
std::optional<Provenance> provenance_of(const safetensors::File& file,
                                        const std::vector<std::string>& overrides);

enum class ExportFormat { safetensors, hf };

/// Names of files in a model directory of transformers.
inline constexpr const char *kHfConfig = "config.json", *kHfWeights = "model.safetensors";
/// Name of the file with o_proj and subln of each V1 layer, whose product model.safetensors holds.
inline constexpr const char* kUnfolded = "difftape.safetensors";
/// Name of the Python file with the classes of V2.
inline constexpr const char* kModelingFile = "modeling_difftape.py";
/// Name of the page that says how to load the model.
inline constexpr const char* kHfReadme = "README.md";
/// Name of the SentencePiece model of the training data.
inline constexpr const char* kHfTokenizer = "tokenizer.model";

/// Writes one safetensors file in difftape's layout. Throws OutputError.
void export_safetensors(const NamedModel& named, const std::filesystem::path& file);

/// Writes a new directory for AutoModelForCausalLM.from_pretrained, atomically, with the tokenizer
/// if it is a SentencePiece model. Its README.md has the code that loads it. Throws UsageError
/// with every reason why transformers cannot compute the model, OutputError.
void export_hf(const NamedModel& named, const std::filesystem::path& directory);

/// Imports the model of a safetensors file, or of a directory with model.safetensors and
/// config.json, with the SentencePiece model in tokenizer.model beside the weights, if there is
/// one. Weights equal the exported ones bit for bit. `overrides` may set keys of data.* and
/// train.*. Throws UsageError, MissingInput, ConfigError; DataError if the file is damaged or
/// has an unsupported type, or if tensors are missing, unknown or of the wrong shape.
NamedModel import_model(const std::filesystem::path& where,
                        const std::vector<std::string>& overrides = {});

/// Writes a checkpoint with weights and tokenizer only, for train.init_from but not for resuming.
/// Throws OutputError.
void write_imported(const NamedModel& named, const std::filesystem::path& checkpoint);

constexpr auto names_of(ExportFormat) {
  return std::to_array<Named<ExportFormat>>(
      {{"safetensors", ExportFormat::safetensors}, {"hf", ExportFormat::hf}});
}

}  // namespace difftape::run
