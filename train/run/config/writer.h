#pragma once
// Writes configurations as YAML that can be read back or as JSON, and the JSON Schema of all keys.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "train/run/config/reader.h"
#include "train/run/config/value.h"

namespace difftape::run {

/// Returns every key with its value in nested YAML. Reading it gives the identical Config.
std::string to_yaml(const Config& config);

/// Returns the same with a comment after every value that names its origin: `default`,
/// `file.yaml:line` or `--set`.
std::string to_yaml_with_origins(const ResolvedConfig& resolved);

/// Keys and values in registry order, for example {"model.d_model", "128"}.
using FlatConfig = std::vector<std::pair<std::string, std::string>>;

inline constexpr unsigned kAllKeys = 0;

/// Returns the keys with one of the KeyFlag bits, with their values as YAML.
FlatConfig flat_config(const Config& config, unsigned flags = kAllKeys);

/// A key with two different values, as YAML.
struct KeyDifference {
  std::string key, a, b;
};

/// Returns the keys of both with different values, in the order of `a`.
std::vector<KeyDifference> differences(const FlatConfig& a, const FlatConfig& b);
/// Returns the keys with one of the flags in which two configurations differ.
std::vector<KeyDifference> differences(const Config& a, const Config& b, unsigned flags = kAllKeys);

/// Formats as "optim.lr is 0.001, not 0.002; ..."; `where` follows the first values.
std::string in_words(const std::vector<KeyDifference>& differences, const char* where = "");

/// Returns the value of a key as YAML without quotes; empty if there is no such key.
std::string value_text(const Config& config, const std::string& key);

/// Returns every key with its value as nested JSON, with a newline at the end.
std::string to_json(const Config& config);

/// Formats a value for one line of YAML, and as JSON.
std::string yaml_text(const ConfigValue& value);
nlohmann::ordered_json json_of(const ConfigValue& value);

/// Returns the JSON Schema (draft 7, which editors support) of a configuration or sweep file with
/// nested or dotted keys.
std::string config_schema();

}  // namespace difftape::run
