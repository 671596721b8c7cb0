#pragma once
// Tiny runs of every attention kind, disturbed by the shim and resumed.

#include "tests/train/run/loop/tiny.h"

namespace difftape::test {

/// Returns true if the long form of the tests was requested (./dev torture).
bool torture();
/// Prints one line of progress: "faults: 312 kills before a call".
void say(const std::string& line);

/// A fault to inject, and the call at which to inject it.
struct Fault {
  std::string action = {};  ///< as DIFFTAPE_FAULTS_DO; empty: nothing
  long at = 0;              ///< the call, from 1
  std::string word = {};    ///< only in processes with this first argument
};

/// A run of six steps that writes a checkpoint every second step, keeps the newest one, and writes
/// event files. Run i has the i-th attention kind, data type, optimizer and precision,
/// each in turn, and every four runs another part of a model: none, experts, YOCO, sparse blocks.
class DisturbedRun {
 public:
  explicit DisturbedRun(int number);

  const std::string& name() const { return name_; }
  /// The calls that change files of an undisturbed run, "rename run/status.json".
  const std::vector<std::string>& calls() const { return calls_; }
  double seconds() const { return seconds_; }  ///< of an undisturbed run

  /// Starts a run with a fault, or under other conditions, and checks its exit code.
  void start(const Fault& fault, Conditions conditions = {});
  /// Starts a run and kills it after a time.
  void start_and_kill(double after_seconds);
  /// Checks what is there, resumes with another number of threads and checks that all is as if
  /// nothing had happened.
  void resume();

  /// Returns the outcome of the last process started.
  const Outcome& outcome() const { return outcome_; }
  Conditions conditions(const Fault& fault) const;
  std::vector<std::string> command() const;
  fs::path run() const { return project_ / "work/run"; }

 private:
  void prepare();
  void expect_sound() const;

  TinyProject project_;
  std::string name_, program_;
  std::map<std::string, std::string> whole_;  ///< files of the undisturbed run
  std::vector<std::string> calls_;
  Fault fault_;  ///< of the last process started
  Outcome outcome_{};
  double seconds_ = 0;
  int resumed_ = 0;
};

/// The calls in a log of the shim.
std::vector<std::string> logged_calls(const fs::path& log);
/// The step of the last checkpoint whose file the first `done` calls renamed; 0 if there is none.
Index committed_step(const std::vector<std::string>& calls, std::size_t done);

/// Returns the part of each file that must not depend on a disturbance: the text, or the digest of
/// a checkpoint.
std::map<std::string, std::string> lasting_files(const fs::path& run);
/// Every checkpoint of a run that has its final name is whole, and every JSON file can be read.
void expect_no_half_written_file(const fs::path& run);

}  // namespace difftape::test
