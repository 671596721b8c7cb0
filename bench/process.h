#pragma once
// A child process that reads and writes lines.

#include <optional>
#include <string>
#include <vector>

#include "train/system/child.h"

namespace difftape::bench {

/// Runs a command, found in PATH, with pipes to its standard input and output; what it writes to
/// its standard error is kept. Destroying it closes its input, by which a candidate ends, and
/// kills what has not ended within 5 seconds.
class Process {
 public:
  /// Throws MissingInput with the command and the reason if it cannot be started.
  explicit Process(const std::vector<std::string>& command);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Sends a line. If the process is gone, nothing happens; the next read_line() says so.
  void write_line(const std::string& line);
  /// The next line without its newline; nothing once the process has closed its output.
  std::optional<std::string> read_line();
  /// Closes both pipes, waits for the end and says how it was: "exit code 78: <last line of its
  /// standard error>".
  std::string how_it_ended();
  /// Ends it at once.
  void kill();

 private:
  system::File input_, output_, errors_;
  std::optional<system::Child> child_;
};

}  // namespace difftape::bench
