#pragma once
// The worker processes of a sweep, each of which reads a run to train from its standard input, and
// the pool in which they train the queued ones.

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

struct Layout {
  std::vector<std::vector<int>> cores;  ///< of each worker
  std::vector<int> threads;             ///< of each worker

  int jobs() const { return static_cast<int>(cores.size()); }
};

/// Splits `cores` among `jobs` workers as evenly as possible; with more workers than cores they
/// share them. None has more than `most_threads` threads. Needs jobs > 0 and a core.
Layout make_layout(int jobs, const std::vector<int>& cores, int most_threads);

/// Returns how the runs that are left share the machine: in `jobs` workers; for 0, in one per core
/// as far as there are runs and memory. OMP_NUM_THREADS bounds the threads of a worker, and without
/// `jobs` the cores of all. Throws ConfigError if there is not the memory.
Layout choose_layout(std::span<const run::Config* const> left, int jobs);

/// What a worker does: reads a job and trains. Returns what train() returns, and throws what it
/// throws, and DataError for input that is not a job.
system::Exit work(std::istream& in);

/// One of the processes (worker.cpp).
class Worker;

class Pool {
 public:
  /// Called with the position of a run when its worker has started and when it has ended.
  using Changed = std::function<void(std::size_t run)>;

  /// `progress` has one entry a run and is kept up to date. `command` is recorded in env.json.
  Pool(const SweepConfig& sweep, std::vector<RunProgress>& progress, const Layout& layout,
       std::vector<std::string> command, std::string program);
  ~Pool();

  /// Trains all selected runs that are queued, in the order of the sweep. A run that fails does not
  /// stop the others. After a stop request the running ones save their state, then this returns.
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
  int sent_signal_ = 0;  ///< the signal that the workers were sent; 0: none
  double started_, drawn_ = 0;
};

}  // namespace difftape::study
