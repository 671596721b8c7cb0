#pragma once
// Worker processes that train the queued runs of a sweep, each the next one when it is free.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "train/run/loop/stop.h"
#include "train/study/sweep/status_table.h"
#include "train/study/sweep/worker.h"

namespace difftape::study {

class Pool {
 public:
  /// Called with the position of a run when its worker has started and when it has ended.
  using Changed = std::function<void(std::size_t run)>;

  /// `progress` has one entry a run and is kept up to date. `command` is recorded in env.json.
  Pool(const SweepConfig& sweep, std::vector<RunProgress>& progress, const Layout& layout,
       std::vector<std::string> command, std::string program);

  /// Trains all chosen runs that are queued, in the order of the sweep. A run that fails or whose
  /// worker is killed does not stop the others. After a stop request none is begun, the running
  /// ones are sent_signal to save their state, and this returns when they have.
  void train(const run::StopRequest& stop, StatusTable& table, const Changed& changed);

 private:
  struct Slot {
    std::unique_ptr<Worker> worker;  ///< null: free
    std::size_t run = 0;
  };

  bool start_next(int index, StatusTable& table, const Changed& changed);
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
