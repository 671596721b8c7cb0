#pragma once
// Trains a run again, step by step, and compares it bit for bit with what it left behind. Nothing
// is written.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/real.h"

namespace difftape::app {

struct VerifyRequest {
  std::vector<Index> threads = {};  ///< a pass with each; empty: one pass with those of the program
  Index from = 0;  ///< begin at the latest checkpoint that is not after this step; 0: at the start
  std::function<void(const std::string&)> say = [](const std::string&) {};  ///< progress, a line
};

/// The first number that is not as it was.
struct Difference {
  Index step = 0;
  std::string what;  ///< a metric, "val/loss", or an element of a tensor, "model/norm.weight[3]"
  std::string recorded, now;
};

/// The run again, with a number of threads.
struct VerifyPass {
  int threads = 0;
  Index steps = 0;  ///< taken, the one that differs too
  std::optional<Difference> difference;
};

struct Verification {
  std::filesystem::path dir;
  std::string origin;        ///< where training began: "the initial weights", or a checkpoint
  Index checkpoints = 0;     ///< files compared
  std::string other_engine;  ///< what computed the run, if it is not what computes now
  std::vector<VerifyPass> passes;

  bool equal() const;
};

/// Trains up to the last logged step, or to the first step whose loss, gradient norm or checkpoint
/// differs, and compares all metrics but speeds as `difftape diff` does. Throws what open_recorded
/// and restore_to_step throw.
Verification verify_run(const std::filesystem::path& dir, const VerifyRequest& request = {});

/// Returns the text that `difftape verify` prints.
std::string to_text(const Verification& verification);

}  // namespace difftape::app
