#pragma once
// Retrains a run step by step and compares it bitwise with its files. Nothing is written.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/real.h"

namespace difftape::app {

struct VerifyRequest {
  std::vector<Index> threads = {};  ///< one pass per number of threads; empty: one default pass
  Index from = 0;  ///< start at the latest checkpoint up to this step; 0: at the initial weights
  std::function<void(const std::string&)> say = [](const std::string&) {};  ///< progress lines
};

/// The first number that differs.
struct Difference {
  Index step = 0;
  std::string what;  ///< a metric, "val/loss", or an element of a tensor, "model/norm.weight[3]"
  std::string recorded, now;
};

/// A repetition of the run with a number of threads.
struct VerifyPass {
  int threads = 0;
  Index steps = 0;  ///< retrained steps, including the one that differs
  std::optional<Difference> difference;
};

struct Verification {
  std::filesystem::path dir;
  std::string origin;        ///< where retraining started: "the initial weights", or a checkpoint
  Index checkpoints = 0;     ///< compared files
  std::string other_engine;  ///< engine and build of the run if they differ from the current ones
  std::vector<VerifyPass> passes;

  bool equal() const;
};

/// Trains up to the last logged step, or to the first step whose loss, gradient norm or checkpoint
/// differs. Compares all metrics except speeds, as `difftape diff` does. Throws what open_recorded
/// and restore_to_step throw.
Verification verify_run(const std::filesystem::path& dir, const VerifyRequest& request = {});

/// Returns the output of `difftape verify`.
std::string to_text(const Verification& verification);

}  // namespace difftape::app
