#pragma once
// "did you mean": finds the known word nearest to a user's word.

#include <string>
#include <string_view>
#include <vector>

namespace difftape::system {

/// Returns the number of edits that turn a into b: insertions, deletions, replacements and swaps of
/// adjacent characters (optimal string alignment distance).
int edit_distance(std::string_view a, std::string_view b);

/// Returns "; did you mean 'diff_v2'?" for the nearest word, name or path, or nothing if none is
/// near. Near means at most one edit per three letters.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// Returns the nearest dotted key, or nothing. The last part must be near; among these keys, the
/// nearest section decides. So "lr", "train.lr" and "optm.lr" all find "optim.lr".
std::string nearest_key(std::string_view key, const std::vector<std::string>& candidates);

/// Returns did_you_mean of a missing file among the files of its folder, here or shared.
std::string did_you_mean_file(const std::string& missing_path);

}  // namespace difftape::system
