#pragma once
// How the runs of a sweep share the machine: which cores each worker has for itself.

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "train/run/config/config.h"

namespace difftape::study {

/// The cores this process may run on, as the system numbers them.
std::vector<int> usable_cores();

/// How the runs of a sweep share the machine.
struct Layout {
  std::vector<std::vector<int>> cores;  ///< of each worker
  std::vector<int> threads;             ///< of each worker

  int jobs() const { return static_cast<int>(cores.size()); }
  /// "2 processes x 1 thread".
  std::string str() const;
};

/// Splits `cores` among `jobs` workers as evenly as possible; with more workers than cores they
/// share them. None has more than `most_threads` threads. Needs jobs > 0 and a core.
Layout make_layout(int jobs, const std::vector<int>& cores, int most_threads);

/// Of `jobs` > 0 workers those that train, on average until the last of `runs` > 0 equally long
/// runs is done: 1.5 of 2 workers for 3 runs.
double mean_busy(std::size_t runs, int jobs);

/// How many processes have the memory to train these runs, of which there is one at least, as many
/// as cores at most. Throws ConfigError if `jobs` of them, or one if that is 0, have not.
int jobs_with_memory(std::span<const run::Config* const> runs, int jobs);

/// How `left` runs share the machine, the first of which is `config`. `jobs` > 0 decides itself;
/// otherwise what is done sooner, one process with all threads or one process a core, measured
/// within some seconds and printed with the tokens per second of both, of all workers until the
/// last run is done; without a measurement if one core or one run is left. OMP_NUM_THREADS bounds
/// the threads of a process, and without `jobs` the cores of all. `most_jobs` have the memory.
Layout choose_layout(const run::Config& config, std::size_t left, int jobs, int most_jobs,
                     const std::string& program, std::ostream& console);

}  // namespace difftape::study
