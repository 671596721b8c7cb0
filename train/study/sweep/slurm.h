#pragma once
// A sweep on a cluster: its runs as one job array of Slurm, and a job behind it that compares them.

#include <ostream>
#include <string>
#include <vector>

#include "train/study/sweep/sweep_config.h"

namespace difftape::study {

struct SlurmRequest {
  std::vector<std::string> sweep;    ///< the words that name this sweep again, program first
  std::vector<std::string> options;  ///< more of sbatch's, for the jobs that train: "--time=60"
  std::ostream* console;
};

/// Submits the selected runs that are not complete. Each task of the array calls the program with
/// --run NAME, one run after the other where Slurm allows fewer tasks than there are runs; the job
/// behind it calls it with --compare. Scripts and logs are in <out>/slurm. A task that is preempted
/// or whose time is nearly up saves its run and goes back into the queue. Throws MissingInput
/// without Slurm, OutputError if it refuses, if an earlier array of this sweep is still in the
/// queue, and as run_sweep does.
void submit_to_slurm(const SweepConfig& sweep, const SlurmRequest& request);

/// The script of the array that trains these runs.
std::string slurm_script(const std::vector<std::string>& runs, const SlurmRequest& request);

}  // namespace difftape::study
