#pragma once
// A model that Hugging Face transformers saved, as a configuration of difftape.

#include <filesystem>
#include <string>
#include <vector>

#include "train/run/config/config.h"

namespace difftape::run {

/// What a config.json says of its model, with `overrides` of data.* and train.*. A vocabulary of
/// another size than that of bytes is of data.type tokens. Throws MissingInput; DataError with all
/// that difftape has not; ConfigError.
Config config_of_hf(const std::filesystem::path& file, const std::vector<std::string>& overrides);

}  // namespace difftape::run
