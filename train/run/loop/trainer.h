#pragma once
// Trains one run, from a configuration to a run directory.

#include <chrono>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "train/run/config/config.h"
#include "train/system/exit.h"

namespace difftape::run {

struct TrainRequest {
  std::filesystem::path out;  ///< run directory
  bool resume = false;        ///< continues from its newest checkpoint
  std::string note = {};      ///< line to print and log before the first step; may be empty
  std::vector<std::string> command = {};  ///< recorded in env.json
  std::ostream* console = nullptr;        ///< null: silent
  int console_descriptor = -1;            ///< file descriptor of the console; -1: not a terminal
  bool profile = false;                   ///< also writes trace.json and profile.txt
  /// Writes a checkpoint after this time without one.
  std::chrono::duration<double> checkpoint_after = std::chrono::minutes(5);
};

/// Trains and writes the run directory: config.yaml, env.json, status.json, metrics.jsonl,
/// attention_maps.h5, stdout.log, checkpoints/; with `profile` also trace.json and profile.txt.
/// Returns ok; diverged, which is a complete result; or sigint or sigterm after writing a
/// checkpoint. Throws Error after setting status.json to failed. Resuming a finished run changes
/// none of its bytes.
system::Exit train(const Config& config, const TrainRequest& request);

/// Returns the default run directory of a configuration.
std::filesystem::path default_out(const Config& config);

}  // namespace difftape::run
