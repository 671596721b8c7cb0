#pragma once
// What keys and values of the configuration were called before: an old name is an error that names
// the new one.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace difftape::run {

struct FormerKey {
  std::string key;
  std::vector<std::string> now;  ///< the keys that replace it, one for each task that had it
  /// What to write there for which former value, if values changed too.
  std::vector<std::pair<std::string, std::string>> values = {};

  /// "model.match_params: true for parameters, false for none".
  std::string description() const;
};

struct FormerValue {
  std::string key, value, now;
};

std::span<const FormerKey> former_keys();
std::span<const FormerValue> former_values();

/// Null if the key never had another meaning.
const FormerKey* find_former_key(const std::string& key);
/// The new value, or empty.
std::string value_now(const std::string& key, const std::string& former);

/// A key of a configuration and its value, both as text.
using KeyAndValue = std::pair<std::string, std::string>;
/// What any version recorded, under the names of today: every key and value that has not changed is
/// itself. Nothing for a former key of a task that is not `data_kind`, a name of today.
std::optional<KeyAndValue> under_new_names(const std::string& key, const std::string& value,
                                           std::string_view data_kind);

}  // namespace difftape::run
