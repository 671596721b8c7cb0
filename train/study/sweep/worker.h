#pragma once
// Worker processes of a sweep, which read the run to train from standard input, and the pool that
// trains all queued runs with them.

#include <functional>
#include <iosfwd>
#include <span>
#include <vector>

#include "train/run/config/config.h"
#include "train/run/loop/trainer.h"
#include "train/study/sweep/run_progress.h"
#include "train/study/sweep/sweep.h"
#include "train/system/exit.h"

namespace difftape::study {

/// Assignment of cores and threads to workers.
struct Layout {
  std::vector<std::vector<int>> cores;  ///< per worker
  std::vector<int> threads;             ///< per worker

  int jobs() const { return static_cast<int>(cores.size()); }
};

/// Splits `cores` among `jobs` > 0 workers as evenly as possible; more workers than cores share
/// them. A worker has at most `most_threads` threads. Needs at least one core.
Layout make_layout(int jobs, const std::vector<int>& cores, int most_threads);

/// Returns a layout for the remaining runs: `jobs` workers, or for 0 one worker per core as far as
/// runs and memory suffice. OMP_NUM_THREADS limits the threads per worker and, without `jobs`, the
/// total number of cores. Throws ConfigError if the memory does not suffice.
Layout choose_layout(std::span<const run::Config* const> left, int jobs);

/// Returns the request to train a run, or to resume it. Removes an incomplete start of the run.
run::TrainRequest train_request(const SweepRun& run, const RunProgress& progress,
                                const SweepRequest& request);

/// Reads such a request and its configuration, and trains, in a worker. Returns and throws what
/// train() does; throws DataError for other input.
system::Exit work(std::istream& in);

/// Called with the index of a run after its worker has started and after it has ended.
using RunChanged = std::function<void(std::size_t run)>;

/// Trains all selected, queued runs in worker processes, in the order of the sweep. `progress` has
/// one entry per run and is kept up to date. A failed run does not stop the others. After a stop
/// request the active runs save their state before this returns.
void train_in_workers(const SweepConfig& sweep, const SweepRequest& request, const Layout& layout,
                      const system::StopRequest& stop, std::vector<RunProgress>& progress,
                      StatusTable& table, const RunChanged& changed);

}  // namespace difftape::study
