#pragma once
// Trains a run again and compares it bitwise with its files.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/real.h"

namespace difftape::app {

/// A repetition of the run with a number of threads.
struct VerifyPass {
  int threads = 0;
  std::string difference;  ///< the first one; empty: equal
};

struct Verification {
  std::filesystem::path dir;
  Index steps = 0, checkpoints = 0;  ///< compared steps and files
  std::string other_engine;  ///< engine and build of the run if they differ from the current ones
  std::vector<VerifyPass> passes;

  bool equal() const;
};

/// Trains the configuration of a run from its first step in a temporary directory, once per number
/// of threads (none: the default number). Compares all metrics except speeds at the steps that both
/// logged, and the bytes of the checkpoints that both wrote. Throws UsageError for a number of
/// threads outside 1 to 1024, and what open_run and train throw.
Verification verify_run(const std::filesystem::path& dir, std::vector<Index> threads = {},
                        const std::function<void(const std::string&)>& say = {});

/// Returns the output of `difftape verify`.
std::string to_text(const Verification& verification);

}  // namespace difftape::app
