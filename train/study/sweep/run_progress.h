#pragma once
// How far the runs of a sweep are: on disk before it goes on, and while it does.

#include <filesystem>
#include <limits>
#include <string>

#include "core/error.h"
#include "train/study/sweep/sweep_config.h"
#include "train/system/child.h"
#include "train/system/exit.h"

namespace difftape::study {

enum class Phase { queued, running, finished, diverged, stopped, failed };
/// Its word in index.csv: "queued".
std::string_view name_of(Phase phase);

struct RunProgress {
  Phase phase = Phase::queued;
  bool on_disk = false;  ///< the directory holds this run, whose status.json is there
  bool partial = false;  ///< it holds what a run leaves that is killed before (run_start.h)
  bool selected = true;  ///< to be trained in this sweep, if it is not complete
  Index done = 0;        ///< steps from which it continues, or has continued
  Index step = 0;        ///< the last step that was logged
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< of that step, nats a token
  system::Exit exit = system::Exit::ok;                    ///< of a run that failed
  std::string error = {};                                  ///< why it failed

  bool complete() const { return phase == Phase::finished || phase == Phase::diverged; }
};

/// What the directory of a run holds: nothing that was trained, the complete run, or one that broke
/// off, which is queued again. One that cannot be read has failed. Throws OutputError if it holds
/// anything else. A run that is not selected then counts as not there.
RunProgress inspect(const SweepRun& run);

/// Reads the last logged step and its loss.
void read_last_step(const std::filesystem::path& run_dir, RunProgress& progress);

/// Takes the result of a worker that has ended from its exit code and from status.json. `message`
/// is the worker's last one, `sent_signal` the signal that the sweep sent it, 0 if none: a worker
/// that this signal killed before it handled signals was stopped and has not failed.
void finish(const std::filesystem::path& run_dir, const system::Ending& ending, int sent_signal,
            const std::string& message, RunProgress& progress);

}  // namespace difftape::study
