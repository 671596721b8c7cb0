#pragma once
// A model from files that difftape exported or transformers saved.

#include <filesystem>
#include <string>
#include <vector>

#include "train/run/inference/model.h"

namespace difftape::run {

/// The model of a safetensors file, or of a directory with model.safetensors and config.json, its
/// weights bit for bit those that were exported. `overrides` may set keys of data.* and train.*.
/// Throws UsageError, MissingInput, ConfigError; DataError if weights are damaged, of several or
/// unknown types, missing, left over or of other shapes than the configuration says.
NamedModel import_model(const std::filesystem::path& where,
                        const std::vector<std::string>& overrides = {});

/// Writes it as a checkpoint from which training can begin, but not go on. Throws OutputError.
void write_imported(const NamedModel& named, const std::filesystem::path& checkpoint);

}  // namespace difftape::run
