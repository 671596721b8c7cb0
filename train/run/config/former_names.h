#pragma once
// What keys and values of the configuration were called before: an old name is an error that names
// the new one.

#include <span>
#include <string>
#include <vector>

namespace difftape::run {

struct FormerKey {
  std::string key;
  std::vector<std::string> now;  ///< the keys that replace it, one for each task that had it
  std::string value = "";        ///< what to write there, if values changed too
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

}  // namespace difftape::run
