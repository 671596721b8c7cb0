#pragma once
// What keys and words of the configuration were called before: an old name is an error that names
// the new one.

#include <span>
#include <string>
#include <vector>

namespace difftape::run {

struct FormerKey {
  std::string key;
  std::vector<std::string> now;  ///< the keys that replace it, one for each task that had it
  std::string value = {};        ///< what to write there, if values changed too
};

struct FormerWord {
  std::string key, word, now;
};

std::span<const FormerKey> former_keys();
std::span<const FormerWord> former_words();

/// Null if the key never had another meaning.
const FormerKey* find_former_key(const std::string& key);
/// The new word, or empty.
std::string word_now(const std::string& key, const std::string& former);

}  // namespace difftape::run
