#pragma once
// Trains all runs of a sweep, then compares them.

#include <iosfwd>
#include <ostream>
#include <string>
#include <vector>

#include "core/error.h"
#include "train/study/sweep/run_progress.h"
#include "train/study/sweep/sweep_config.h"
#include "train/system/exit.h"

namespace difftape::study {

/// Options of a sweep command.
struct SweepRequest {
  std::vector<std::string> command;  ///< recorded in each env.json
  std::ostream* console;
  int console_descriptor = -1;
  int jobs = 0;  ///< worker processes; 0: one per core
  /// The program of the workers, which must have the command `worker`.
  std::string program = "/proc/self/exe";
};

/// Trains the selected runs in worker processes, each in its run directory. It maintains
/// <out>/runs.csv and compares all existing runs, on the console and in files of <out>. Complete
/// runs with the same configuration are kept; interrupted ones resume. A diverged run is a result.
/// A failed run is reported and does not stop the others, unless none can use its data. Returns ok,
/// the code of the signal that stopped the sweep, or the code of the first failed run. Before any
/// training, throws OutputError if a run's directory contains something else or another process
/// trains there, and what require_data throws.
system::Exit run_sweep(const SweepConfig& sweep, const SweepRequest& request);

// The parts of run_sweep for runs that independent processes train.

/// Creates the directory, runs.csv and the copy of the claims. Returns the names of the selected
/// runs that are not complete.
std::vector<std::string> start_elsewhere(const SweepConfig& sweep);
/// Trains or resumes the run of that name in this process. Throws UsageError for an unknown name.
system::Exit train_one(const SweepConfig& sweep, const std::string& name,
                       const SweepRequest& request);
/// Updates runs.csv and compares the existing runs.
system::Exit compare_sweep(const SweepConfig& sweep, const SweepRequest& request);

/// Throws MissingInput, DataError or ConfigError if runs are left to train and none of them can use
/// its data.
void require_data(const SweepConfig& sweep, const std::vector<RunProgress>& progress);

/// Prints one line per run: state, parameters, tokens, steps and FLOPs, and estimates the remaining
/// time from the speed of finished runs. Says so if the data cannot be used. Writes nothing.
void dry_run(const SweepConfig& sweep, const SweepRequest& request);

/// Options of a submission to Slurm.
struct SlurmRequest {
  std::vector<std::string> sweep;    ///< command line of this sweep, program first
  std::vector<std::string> options;  ///< options of sbatch for the training jobs: "--time=60"
  std::ostream* console;
};

/// Submits the selected runs that are not complete; scripts and logs are in <out>/slurm. A task
/// that is preempted or close to its time limit saves its run and is queued again. Throws
/// MissingInput without Slurm, OutputError if Slurm rejects the job or an earlier array of this
/// sweep is still queued, and what run_sweep throws.
void submit_to_slurm(const SweepConfig& sweep, const SlurmRequest& request);

/// Returns the script of the job array that trains these runs.
std::string slurm_script(const std::vector<std::string>& runs, const SlurmRequest& request);

}  // namespace difftape::study
