#pragma once
// A worker process of a sweep, seen from the sweep.

#include <optional>
#include <string>

#include "train/study/sweep/cores.h"
#include "train/study/sweep/job.h"
#include "train/system/child.h"

namespace difftape::study {

/// Runs one job in a process of its own, pinned to the cores of a place in a layout. It is apart
/// from the terminal, so that an interrupt reaches it once, from the sweep. Destroying it kills it.
class Worker {
 public:
  /// `program` answers to the command `worker`. Throws MissingInput or OutputError if it cannot be
  /// started.
  Worker(const Job& job, const Layout& layout, int place, const std::string& program);

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

}  // namespace difftape::study
