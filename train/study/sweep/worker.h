#pragma once
// Worker processes of a sweep, which read the run to train from standard input, and the pool that
// trains all queued runs with them.

#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "train/run/config/config.h"
#include "train/study/sweep/run_progress.h"
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

/// Reads a job and trains it, in a worker. Returns and throws what train() does; throws DataError
/// for input that is not a job.
system::Exit work(std::istream& in);

/// A worker process (worker.cpp).
class Worker;

/// Trains the queued runs of a sweep in worker processes.
class Pool {
 public:
  /// Called with the index of a run after its worker has started and after it has ended.
  using Changed = std::function<void(std::size_t run)>;

  /// `progress` has one entry per run and is kept up to date. `command` is recorded in env.json.
  Pool(const SweepConfig& sweep, std::vector<RunProgress>& progress, const Layout& layout,
       std::vector<std::string> command, std::string program);
  ~Pool();

  /// Trains all selected, queued runs in the order of the sweep. A failed run does not stop the
  /// others. After a stop request the active runs save their state before this returns.
  void train(const system::StopRequest& stop, StatusTable& table, const Changed& changed);

 private:
  struct Slot {
    std::unique_ptr<Worker> worker;  ///< null: free
    std::size_t run = 0;
  };

  bool start_next(std::size_t index, StatusTable& table, const Changed& changed);
  void finish_ended(StatusTable& table, const Changed& changed);
  void redraw(StatusTable& table);
  bool idle() const;

  const SweepConfig& sweep_;
  std::vector<RunProgress>& progress_;
  const Layout layout_;
  const std::vector<std::string> command_;
  const std::string program_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;
  int sent_signal_ = 0;  ///< the signal sent to the workers; 0: none
  double started_, drawn_ = 0;
};

}  // namespace difftape::study
