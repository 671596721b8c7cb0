#pragma once
// How the runs of a sweep share the machine: which cores each worker has for itself.

#include <span>
#include <vector>

#include "train/run/config/config.h"

namespace difftape::study {

struct Layout {
  std::vector<std::vector<int>> cores;  ///< of each worker
  std::vector<int> threads;             ///< of each worker

  int jobs() const { return static_cast<int>(cores.size()); }
};

/// Splits `cores` among `jobs` workers as evenly as possible; with more workers than cores they
/// share them. None has more than `most_threads` threads. Needs jobs > 0 and a core.
Layout make_layout(int jobs, const std::vector<int>& cores, int most_threads);

/// How runs that are left, of which there is one at least, share the machine: in `jobs` workers;
/// for 0, in one worker a core, as far as there are runs and memory. OMP_NUM_THREADS bounds the
/// threads of a worker, and without `jobs` the cores of all. Throws ConfigError if `jobs` workers,
/// or one if that is 0, have not the memory.
Layout choose_layout(std::span<const run::Config* const> left, int jobs);

}  // namespace difftape::study
