#pragma once
// Decides if a run can be continued with a configuration: the original one, or a longer one.

#include <filesystem>
#include <string>
#include <vector>

#include "train/run/config/writer.h"

namespace difftape::run {

/// Returns the differences in keys that affect recorded results (kOfResult) between the
/// configuration `made` of a run and `wanted`. Equivalent spellings of a spike rule are equal.
std::vector<KeyDifference> result_differences(const Config& made, const Config& wanted);

/// Returns the reason why the run in `dir` has other results than `config` would have, such as
/// "optim.lr is 0.001 there, not 0.002", or why it cannot be read. Empty if the results are equal.
std::string why_other_run(const std::filesystem::path& dir, const Config& config);

/// Returns the reason why a run cannot continue with `wanted`, such as "optim.lr is 0.001, not
/// 0.002"; empty if it can. It can if the results are the same, or if only train.steps grows under
/// a constant schedule. Paths of data may differ; their contents are compared when they are read.
std::string why_not_continued(const Config& made, const Config& wanted);

/// Returns the command that resumes a run with its own configuration.
std::string resume_command(const std::filesystem::path& dir);

/// Throws ConfigError with that reason if there is one, and with the command that resumes the run
/// in `dir` with its configuration `made`.
void require_continued(const Config& made, const Config& wanted, const std::filesystem::path& dir);

}  // namespace difftape::run
