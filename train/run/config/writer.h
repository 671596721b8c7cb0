#pragma once
// Configurations and their vocabulary as text: YAML that runs as is, the table of keys, the schema.

#include <string>
#include <utility>
#include <vector>

#include "train/run/config/reader.h"

namespace difftape::run {

/// Every key with its value, in nested YAML. Reading it gives the identical Config.
std::string to_yaml(const Config& config);

/// The same with a comment after every value that says where it came from: `default`,
/// `file.yaml:line` or `--set`.
std::string to_yaml_with_origins(const ResolvedConfig& resolved);

/// Config keys in registry order, for example {"model.d_model", "128"}.
using FlatConfig = std::vector<std::pair<std::string, std::string>>;

/// Every key with its value as YAML, in the order of the registry.
FlatConfig flat_config(const Config& config);

/// One line a key, those of sweeps last: key, type, default, range, unit and a sentence, in aligned
/// columns.
std::string describe_keys();

/// JSON Schema (draft 7, which editors know) of a configuration or sweep file, its keys nested or
/// dotted.
std::string config_schema();

}  // namespace difftape::run
