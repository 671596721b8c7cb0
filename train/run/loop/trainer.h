#pragma once
// One training run, from a configuration to a run directory.

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "train/run/config/config.h"
#include "train/system/exit.h"

namespace difftape::run {

struct TrainRequest {
  std::filesystem::path out;  ///< the run directory
  bool resume = false;        ///< continue from its latest checkpoint
  std::string note = {};      ///< a line to show and log before the first step; may be empty
  std::vector<std::string> command = {};  ///< recorded in env.json
  std::ostream* console = nullptr;        ///< null: silent
  int console_descriptor = -1;  ///< what decides whether the console is a terminal; -1: not
  bool profile = false;         ///< also write trace.json and profile.txt of some steps
};

/// Trains and writes the run directory: config.yaml, env.json, status.json, metrics.jsonl,
/// metrics.h5, stdout.log, checkpoints/; with `profile` also trace.json and profile.txt. Returns
/// ok, diverged (a result: everything is written), or sigint / sigterm after a checkpoint was
/// written. Throws Error; status.json then says failed. A finished run that is resumed as it is
/// stays as it is, to the last byte.
system::Exit train(const Config& config, const TrainRequest& request);

/// Whether `dir` holds a run to resume. If a process left nothing there but the beginning of one,
/// that is removed, and a run can start there. Throws OutputError if it cannot be removed.
bool has_run_to_resume(const std::filesystem::path& dir);

/// Where a run of this configuration goes if the user does not say.
std::filesystem::path default_out(const Config& config);

}  // namespace difftape::run
