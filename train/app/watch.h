#pragma once
// Commands that follow runs while they are trained.

#include <filesystem>
#include <functional>
#include <vector>

#include "train/system/exit.h"

namespace difftape::app {

/// What was seen of runs.
enum class Seen { nothing, some_go_on, all_have_ended };

/// After which a page of runs in training loads itself again.
constexpr int kRefreshSeconds = 5;

/// Calls `look` whenever a file of the runs in these directories was written, with pauses in which
/// the runs have the processor, until it has seen all runs end and no sweep there has one to come,
/// or until a signal comes, whose code is returned. Throws MissingInput for what is no directory.
system::Exit watch_runs(const std::vector<std::filesystem::path>& dirs,
                        const std::function<Seen()>& look);

}  // namespace difftape::app
