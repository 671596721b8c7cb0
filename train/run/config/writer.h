#pragma once
// Configurations and their vocabulary as text: YAML that runs as is, JSON, the schema.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "train/run/config/reader.h"
#include "train/run/config/value.h"

namespace difftape::run {

/// Every key with its value, in nested YAML. Reading it gives the identical Config.
std::string to_yaml(const Config& config);

/// The same with a comment after every value that says where it came from: `default`,
/// `file.yaml:line` or `--set`.
std::string to_yaml_with_origins(const ResolvedConfig& resolved);

/// Config keys in registry order, for example {"model.d_model", "128"}.
using FlatConfig = std::vector<std::pair<std::string, std::string>>;

inline constexpr unsigned kAllKeys = 0;

/// The keys with one of the flags of KeyFlag, with their values as YAML, in the order of the
/// registry.
FlatConfig flat_config(const Config& config, unsigned flags = kAllKeys);

/// A key that two configurations give different values, as YAML.
struct KeyDifference {
  std::string key, a, b;
};

/// The keys of both to which they give different values, in the order of `a`.
std::vector<KeyDifference> differences(const FlatConfig& a, const FlatConfig& b);
/// The keys of flat_config in which two configurations differ.
std::vector<KeyDifference> differences(const Config& a, const Config& b, unsigned flags = kAllKeys);

/// "optim.lr is 0.001, not 0.002; ..."; `where` stands behind the first values.
std::string in_words(const std::vector<KeyDifference>& differences, const char* where = "");

/// The same as nested JSON, with a newline at the end.
std::string to_json(const Config& config);

/// A value as it is written within a line of YAML, and as JSON.
std::string yaml_text(const ConfigValue& value);
nlohmann::ordered_json json_of(const ConfigValue& value);

/// JSON Schema (draft 7, which editors know) of a configuration or sweep file, its keys nested or
/// dotted.
std::string config_schema();

}  // namespace difftape::run
