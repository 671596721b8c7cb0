#pragma once
// Trains every run of a sweep, then compares them.

#include <iosfwd>
#include <ostream>
#include <string>
#include <vector>

#include "core/error.h"
#include "train/study/sweep/run_progress.h"
#include "train/study/sweep/sweep_config.h"
#include "train/system/exit.h"

namespace difftape::study {

struct SweepRequest {
  std::vector<std::string> command;  ///< recorded in each env.json
  std::ostream* console;
  int console_descriptor = -1;
  int jobs = 0;  ///< worker processes; 0: one a core
  /// The program that workers run, which must know the command `worker`.
  std::string program = "/proc/self/exe";
};

/// Trains the selected runs in worker processes, each in its run directory, keeps <out>/index.csv,
/// and compares all runs that are there, on the console and as files of <out>. A complete run with
/// the same configuration is kept, an interrupted one continues. A diverged run is a result; one
/// that fails is reported and does not stop the others. Returns ok, the code of the signal that
/// stopped it, or the code of the first run that failed. Throws OutputError, before anything is
/// trained, if a run's directory holds something else or another process trains there.
system::Exit run_sweep(const SweepConfig& sweep, const SweepRequest& request);

/// The parts of run_sweep for runs that are trained by independent processes: makes the directory,
/// index.csv and the copy of the claims, and returns the names of the runs that are selected and
/// not complete;
std::vector<std::string> start_elsewhere(const SweepConfig& sweep);
/// trains the run of that name in this process, from where it is. Throws UsageError if there is
/// none;
system::Exit train_one(const SweepConfig& sweep, const std::string& name,
                       const SweepRequest& request);
/// brings index.csv up to date and compares the runs that are there.
system::Exit compare_sweep(const SweepConfig& sweep, const SweepRequest& request);

/// Prints one line per run: state, parameters, tokens, steps, operations, and how long the rest
/// takes at the rate of finished runs. Writes nothing.
void dry_run(const SweepConfig& sweep, const SweepRequest& request);

struct SlurmRequest {
  std::vector<std::string> sweep;    ///< the words that name this sweep again, program first
  std::vector<std::string> options;  ///< more of sbatch's, for the jobs that train: "--time=60"
  std::ostream* console;
};

/// Submits the selected runs that are not complete; scripts and logs are in <out>/slurm. A task
/// that is preempted or whose time is nearly up saves its run and goes back into the queue. Throws
/// MissingInput without Slurm, OutputError if it refuses or an earlier array of this sweep is still
/// in the queue, and as run_sweep does.
void submit_to_slurm(const SweepConfig& sweep, const SlurmRequest& request);

/// The script of the array that trains these runs.
std::string slurm_script(const std::vector<std::string>& runs, const SlurmRequest& request);

}  // namespace difftape::study
