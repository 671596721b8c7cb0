#pragma once
// The worker processes of a sweep: what each is asked to do, by a text on its standard input, the
// process itself, seen from the sweep, and the pool in which they train its queued runs.

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "train/run/config/config.h"
#include "train/study/sweep/layout.h"
#include "train/study/sweep/run_progress.h"
#include "train/system/child.h"
#include "train/system/exit.h"
#include "train/system/files.h"

namespace difftape::study {

struct Job {
  run::Config config;
  /// 0: train in `out`. Otherwise time steps for about so many seconds, writing nothing.
  double measure_seconds = 0;
  std::filesystem::path out;
  bool resume = false;
  std::vector<std::string> command;  ///< recorded in env.json
};

/// What measuring found out.
struct StepTime {
  double start = 0;       ///< seconds until the first step: data, weights
  double step = 0;        ///< seconds a step, the median after the first
  Index val_batches = 0;  ///< that are held out
};

std::string to_text(const Job& job);
std::string to_text(const StepTime& time);
/// Throw DataError for a text that is not one of to_text.
Job read_job(const std::string& text);
StepTime read_step_time(const std::string& text);

/// What the worker does: reads a job, trains or measures, prints nothing but a StepTime. Returns
/// what train() returns, and throws what it throws.
system::Exit work(std::istream& in, std::ostream& out);

/// Runs one job in a process of its own, pinned to the cores of a slot of a layout. It is apart
/// from the terminal, so that an interrupt reaches it once, from the sweep. Destroying it kills it.
class Worker {
 public:
  /// `program` answers to the command `worker`. Throws MissingInput or OutputError if it cannot be
  /// started.
  Worker(const Job& job, const Layout& layout, int slot, const std::string& program);

  const std::optional<system::ExitStatus>& poll() { return child_->poll(); }
  void signal(int number) { child_->signal(number); }
  pid_t id() const { return child_->id(); }
  /// What it printed, once it has ended.
  std::string output() const { return system::contents_of(output_.get()); }
  /// Why it ended before its job was done: its own message, or the signal that killed it.
  std::string error_message();

 private:
  system::File input_, output_, errors_;
  std::optional<system::Child> child_;
};

/// Times steps of `config` for about `seconds` in every worker of the layout at once; nothing is
/// written. The mean over the workers. Nothing if they fail, as a run of this configuration then
/// will, or take more than `limit` seconds in all.
std::optional<StepTime> measure_step(const run::Config& config, const Layout& layout,
                                     double seconds, double limit, const std::string& program);

class Pool {
 public:
  /// Called with the position of a run when its worker has started and when it has ended.
  using Changed = std::function<void(std::size_t run)>;

  /// Asked before a run is trained, by its name; false: another process trains it.
  using Takes = std::function<bool(const std::string& run)>;

  /// `progress` has one entry a run and is kept up to date. `command` is recorded in env.json.
  Pool(const SweepConfig& sweep, std::vector<RunProgress>& progress, const Layout& layout,
       std::vector<std::string> command, std::string program, Takes takes = nullptr);

  /// Trains all selected runs that are queued, in the order of the sweep. A run that fails or whose
  /// worker is killed does not stop the others. After a stop request none is started, the running
  /// ones are told to save their state, and this returns when they have.
  void train(const system::StopRequest& stop, StatusTable& table, const Changed& changed);

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
  const Takes takes_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;
  int sent_signal_ = 0;  ///< the signal that the workers were sent; 0: none
  double started_, drawn_ = 0;
};

}  // namespace difftape::study
