#pragma once
// Runs processes that take training steps in turns, A B C A B C, so that background load affects
// all of them alike. bench/README.md has the line protocol.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/real.h"
#include "train/system/child.h"
#include "train/system/files.h"

namespace difftape::bench {

/// Runs a command from PATH with pipes to its standard input and output, and keeps its standard
/// error. Destroying it closes the input, at which a candidate ends, and kills it after 5 seconds.
class Process {
 public:
  /// Throws MissingInput with the command and the reason if it cannot be started.
  explicit Process(const std::vector<std::string>& command);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Sends a line. If the process has ended, does nothing; the next read_line() reports it.
  void write_line(const std::string& line);
  /// The next line without its newline; nothing once the process has closed its output.
  std::optional<std::string> read_line();
  /// Closes both pipes, waits for the end and returns its cause: "exit code 78: <last line of its
  /// standard error>".
  std::string how_it_ended();
  /// Ends it at once.
  void kill();

 private:
  system::File input_, output_, errors_;
  std::optional<system::Child> child_;
};

struct Candidate {
  std::string name;       ///< "PyTorch f32 compiled"
  std::string framework;  ///< "PyTorch f32": of one framework the best counts
  std::vector<std::string> command;
  double flops_per_step = 0;  ///< 0: not counted
  Index processes = 1;        ///< of mpirun, that train together
  /// The line of its output that ends its first step: the `line`-th that begins with `begins`.
  std::string begins = "{";
  int line = 2;
};

struct Result {
  Candidate candidate{};
  std::string version{};                ///< what it says about itself
  std::optional<Index> parameters{};    ///< if it has any
  std::vector<double> seconds{};        ///< of every measured step
  std::vector<double> round_medians{};  ///< of the steps of each round, in seconds
  std::vector<double> peak_fraction{};  ///< of each round, of the FMA peak measured before it
  double idle_bytes = 0;                ///< resident before it built anything
  double peak_bytes = 0;                ///< the most that was resident in one process
  double sent_bytes = 0;                ///< of the process that sends most, per step
};

struct BenchmarkResult {
  std::vector<Result> finished;       ///< in the order of the candidates
  std::vector<std::string> left_out;  ///< "name: why"
};

/// Each candidate takes `steps` steps per round, after `warmup` steps that do not count.
struct Interleaving {
  int rounds = 10, steps = 3, warmup = 2;
};

/// Leaves out candidates that cannot start, end early or give an invalid answer; the others
/// continue.
BenchmarkResult run_interleaved(const std::vector<Candidate>& candidates,
                                const Interleaving& rules);

/// Seconds from the start of each process to the end of its first step, `rounds` times after one
/// that does not count. `scratch` is removed before every start.
BenchmarkResult time_to_first_step(const std::vector<Candidate>& candidates, int rounds,
                                   const std::filesystem::path& scratch);

}  // namespace difftape::bench
