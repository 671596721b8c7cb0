#pragma once
// A run directory between its creation and its first status.json: a process that was killed then
// has trained nothing, and nothing can be resumed.

#include <filesystem>

namespace difftape::run {

/// True if `dir` is not empty and holds nothing but what a run writes before its first status.json:
/// some of `lock`, config.yaml, env.json, stdout.log, an empty metrics.jsonl, and their temporary
/// names. Whether the process still lives is for DirectoryLock to say.
bool only_begun(const std::filesystem::path& dir);

/// Empties such a directory, so that a new run can be made there. Throws OutputError if it holds
/// anything else, if a process holds its lock, or if a file cannot be removed.
void clear_begun(const std::filesystem::path& dir);

}  // namespace difftape::run
