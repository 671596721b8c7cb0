#pragma once
// A directory of checkpoints: what its files are called, which of them stay, which one is meant.

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/real.h"

namespace difftape::run {

/// The name of a file with the state after, or of a crash dump at, a step: "step-00000015.h5".
std::string step_file_name(Index step);
/// The step of a file of such a name, whatever its folder; nothing if it has another.
std::optional<Index> step_of_file(const std::filesystem::path& file);

/// Text files beside checkpoints that name one of them.
inline constexpr const char *kLatest = "latest", *kBest = "best";

/// Lets <directory>/best name the checkpoint of a step. Throws OutputError.
void name_best_checkpoint(const std::filesystem::path& directory, Index step);

/// Removes the checkpoints of a directory but the `keep_last` newest, those of steps that
/// `keep_interval` divides, if it is not 0, and those that `latest` and `best` name. What cannot be
/// removed stays. keep_last >= 1.
void prune_checkpoints(const std::filesystem::path& directory, Index keep_last,
                       Index keep_interval);

/// Whether a path is, by its name, that of a checkpoint itself: it ends in .h5.
bool is_checkpoint_file(const std::filesystem::path& path);

/// Whether `where` is, by its name, something of which find_checkpoint finds one: a directory, a
/// .h5 file, or a file `latest` or `best`.
bool names_checkpoint(const std::filesystem::path& where);

/// Steps and files of the checkpoints in a directory, the newest first.
std::vector<std::pair<Index, std::filesystem::path>> checkpoints_in(
    const std::filesystem::path& directory);

/// Whether there is a checkpoint in the directory of a run.
bool has_checkpoint(const std::filesystem::path& run);

/// The checkpoint file that a user means by `where`: the file itself, a `latest` or `best` file, a
/// directory with `latest`, or a run directory with checkpoints/latest; where there is no `latest`,
/// the newest. Throws MissingInput.
std::filesystem::path find_checkpoint(const std::filesystem::path& where);

}  // namespace difftape::run
