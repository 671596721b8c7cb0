#pragma once
// Tiny runs of every kind there is, disturbed by the shim and resumed.

#include <map>
#include <string>
#include <vector>

#include "tests/train/run/loop/tiny.h"

namespace difftape::test {

/// Whether the long form of the tests was asked for (./dev torture).
bool torture();
/// Prints one line of what was done: "faults: 312 kills before a call".
void say(const std::string& line);

/// What goes wrong, and where.
struct Fault {
  std::string action = {};  ///< as DIFFTAPE_FAULTS_DO; empty: nothing
  long at = 0;              ///< the call, from 1
  std::string word = {};    ///< only in processes with this first argument
};

/// A run that trains for six steps: with checkpoints after each second one of which the last stays,
/// the best one and event files. Number i has the i-th attention kind, data kind,
/// optimizer and precision, each in turn.
class DisturbedRun {
 public:
  explicit DisturbedRun(int number);

  const std::string& name() const { return name_; }
  /// The calls that change files of an undisturbed run, "rename run/checkpoints/latest".
  const std::vector<std::string>& calls() const { return calls_; }
  double seconds() const { return seconds_; }  ///< of an undisturbed run

  /// Starts a run with a fault, or under other conditions, and checks its exit code.
  void start(const Fault& fault, Conditions conditions = {});
  /// Starts a run and kills it after a time.
  void start_and_kill(double after_seconds);
  /// Checks what is there, resumes with another number of threads and checks that all is as if
  /// nothing had happened.
  void resume();

  /// How the last one that was started ended.
  const Outcome& outcome() const { return outcome_; }
  Conditions conditions(const Fault& fault) const;
  std::vector<std::string> command() const;
  std::filesystem::path run() const { return project_ / "work/run"; }

 private:
  void prepare();
  void expect_sound() const;

  TinyProject project_;
  std::string name_, program_;
  std::map<std::string, std::string> whole_;  ///< files of the undisturbed run
  std::vector<std::string> calls_;
  Fault fault_;  ///< of the last one that was started
  Outcome outcome_{};
  double seconds_ = 0;
  int resumed_ = 0;
};

/// The calls in a log of the shim.
std::vector<std::string> logged_calls(const std::filesystem::path& log);
/// The step of the last checkpoint that the first `done` calls committed: its file renamed, and
/// then `latest`; 0 if there is none.
Index committed_step(const std::vector<std::string>& calls, std::size_t done);

/// What of a run must not depend on whether it was disturbed, by file: texts, of checkpoints their
/// digests.
std::map<std::string, std::string> lasting_files(const std::filesystem::path& run);
/// Every checkpoint of a run that has its final name is whole, and every JSON file can be read.
void expect_no_half_written_file(const std::filesystem::path& run);

}  // namespace difftape::test
