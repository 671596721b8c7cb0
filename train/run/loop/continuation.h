#pragma once
// Whether a run can go on with a configuration: the one it was made with, or a longer one.

#include <filesystem>
#include <string>
#include <vector>

#include "train/run/config/writer.h"

namespace difftape::run {

/// The keys that decide results of a run (kOfResult of config/fields.h) and that a configuration
/// `wanted` gives other values than it was `made` with. Two ways to write one spike rule are one.
std::vector<KeyDifference> result_differences(const Config& made, const Config& wanted);

/// Returns the keys that decide the numbers of a run (kOfNumbers), with their values. The spike
/// rule is resolved, and a path in train.init_from is replaced by its digest.
FlatConfig result_config(const Config& config);

/// Returns the XXH3 digest of result_config and of the precision of this program. Runs that share
/// it and the digest of their data have the same results.
std::string result_digest(const Config& config);

/// Why what `dir` holds is not a run that can be continued with `config`, the same steps following:
/// "optim.lr is 0.001 there, not 0.002"; "there is no config.yaml". Empty if it is one.
std::string why_other_run(const std::filesystem::path& dir, const Config& config);

/// Why a run that has done `steps` steps cannot go on as `wanted` says: "optim.lr is 0.001, not
/// 0.002". Empty if it can: its results are to be the same, or it is to be longer and every step
/// done had the learning rate and the spike rule that it would have had. Files may lie elsewhere:
/// what is in them is compared by whoever reads them.
std::string why_not_continued(const Config& made, const Config& wanted, Index steps);

/// Throws ConfigError with that reason if there is one. `where`, a checkpoint or a run directory,
/// has done the steps. If an earlier checkpoint beside it can go on so, the error says by which
/// command.
void require_continued(const Config& made, const Config& wanted, Index steps,
                       const std::filesystem::path& where);

/// Makes a new run directory of a checkpoint of another run: that run as it was after the step of
/// the checkpoint, ready to be resumed as `wanted`. The other run stays as it is. Throws
/// MissingInput if the file is none of a run, what Checkpoint and require_continued throw, and
/// OutputError if there is anything at `out`.
void branch_run(const std::filesystem::path& checkpoint, const Config& wanted,
                const std::filesystem::path& out);

}  // namespace difftape::run
