#pragma once
// A model as files that other programs open.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/names.h"
#include "train/run/exchange/safetensors.h"
#include "train/run/inference/model.h"

namespace difftape::run {

/// In which order the numbers are.
enum class WeightLayout { difftape, hf };

constexpr auto names_of(WeightLayout) {
  using enum WeightLayout;
  return std::to_array<Named<WeightLayout>>({{"difftape", difftape}, {"hf", hf}});
}

struct Provenance {
  WeightLayout layout = WeightLayout::difftape;
  Config config;
  Index step = 0;
  nlohmann::json data;  ///< null if it was not trained, or elsewhere
};

safetensors::Metadata to_metadata(const NamedModel& named, WeightLayout layout);

/// Nothing if difftape did not write the file; `overrides` may set keys of data.* and train.*.
/// Throws DataError if a part is missing or no such thing, ConfigError.
std::optional<Provenance> provenance_of(const safetensors::File& file,
                                        const std::vector<std::string>& overrides);

enum class ExportFormat { safetensors, hf };

/// Files in a directory of transformers.
inline constexpr const char *kHfConfig = "config.json", *kHfWeights = "model.safetensors";
/// Of V1 each layer's o_proj and subln, of which the weights hold the product.
inline constexpr const char* kUnfolded = "difftape.safetensors";
/// Of V2 its classes.
inline constexpr const char* kModelingFile = "modeling_difftape.py";

/// Writes one file with the parameters as they are. Throws OutputError.
void export_safetensors(const NamedModel& named, const std::filesystem::path& file);

/// Writes a new directory that AutoModelForCausalLM.from_pretrained opens, all or nothing. Throws
/// UsageError with every reason why transformers cannot compute what the model does, OutputError.
void export_hf(const NamedModel& named, const std::filesystem::path& directory);

/// The model of a safetensors file, or of a directory with model.safetensors and config.json, its
/// weights bit for bit those that were exported. `overrides` may set keys of data.* and train.*.
/// Throws UsageError, MissingInput, ConfigError; DataError if weights are damaged, of several or
/// unknown types, missing, left over or of other shapes than the configuration says.
NamedModel import_model(const std::filesystem::path& where,
                        const std::vector<std::string>& overrides = {});

/// Writes it as a checkpoint from which training can begin, but not go on. Throws OutputError.
void write_imported(const NamedModel& named, const std::filesystem::path& checkpoint);

}  // namespace difftape::run

namespace difftape {

template <>
inline constexpr auto kNames<run::ExportFormat> = std::to_array<Named<run::ExportFormat>>(
    {{"safetensors", run::ExportFormat::safetensors}, {"hf", run::ExportFormat::hf}});

}  // namespace difftape
