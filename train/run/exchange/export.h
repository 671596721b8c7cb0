#pragma once
// A model as files that other programs open.

#include <filesystem>

#include "core/names.h"
#include "train/run/inference/model.h"

namespace difftape::run {

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

}  // namespace difftape::run

namespace difftape {

template <>
inline constexpr auto kNames<run::ExportFormat> = std::to_array<Named<run::ExportFormat>>(
    {{"safetensors", run::ExportFormat::safetensors}, {"hf", run::ExportFormat::hf}});

}  // namespace difftape
