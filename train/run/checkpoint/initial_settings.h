#pragma once
// Compares the model of train.init_from with the model that is to start with its weights.

#include <string>
#include <vector>

#include "train/run/config/reader.h"

namespace difftape::run {

/// Returns one line per key that changes what weights compute and whose value differs from the
/// checkpoint's, such as "model.rope_theta is 500 in the checkpoint, 10000 here"; empty without
/// train.init_from. Defaults that depend on other keys are compared by their values. Throws
/// ConfigError if such a key changes what the weights compute and neither a file nor `--set` names
/// it, and everything that find_checkpoint and Checkpoint throw.
std::vector<std::string> other_initial_settings(const ResolvedConfig& resolved);

}  // namespace difftape::run
