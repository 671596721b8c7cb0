#pragma once
// A worker process of a sweep: what it is asked to do, by a text on its standard input, and the
// process itself, seen from the sweep.

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "train/run/config/config.h"
#include "train/study/sweep/layout.h"
#include "train/system/child.h"
#include "train/system/exit.h"

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
  double start = 0;  ///< seconds until the first step: data, weights
  double step = 0;   ///< seconds a step, the median after the first
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

  const std::optional<system::Ending>& poll() { return child_->poll(); }
  void signal(int number) { child_->signal(number); }
  pid_t id() const { return child_->id(); }
  /// What it printed, once it has ended.
  std::string output() const { return system::contents_of(output_.get()); }
  /// Why it ended before its job was done: its own message, or the signal that killed it.
  std::string last_words();

 private:
  system::File input_, output_, errors_;
  std::optional<system::Child> child_;
};

/// Times steps of `config` for about `seconds` in every worker of the layout at once; nothing is
/// written. The mean over the workers. Nothing if they fail, as a run of this configuration then
/// will, or take more than `limit` seconds in all.
std::optional<StepTime> measure_step(const run::Config& config, const Layout& layout,
                                     double seconds, double limit, const std::string& program);

}  // namespace difftape::study
