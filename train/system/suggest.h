#pragma once
// "did you mean": the nearest known word to what the user wrote.

#include <string>
#include <string_view>
#include <vector>

namespace difftape::system {

/// Edits that turn a into b: insertions, deletions, replacements and swaps of neighbours.
int edit_distance(std::string_view a, std::string_view b);

/// "; did you mean 'diff_v2'?" for the nearest candidate, or nothing if none is near: at most one
/// edit for every three letters. Takes words, names and paths.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// The nearest dotted key, or nothing. The last part must be near; then the key of the nearest
/// section is taken, so that "lr", "train.lr" and "optm.lr" all find "optim.lr".
std::string nearest_key(std::string_view key, const std::vector<std::string>& candidates);

/// The file beside a missing one with the nearest name, as did_you_mean says it.
std::string did_you_mean_file(const std::string& missing_path);

}  // namespace difftape::system
