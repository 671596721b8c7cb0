#pragma once
// A program started by this one.

#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace difftape::system {

/// All that was written to a file so far, read from its beginning.
std::string contents_of(std::FILE* file);
/// The last line of a text that is not blank, without what is blank at its end.
std::string last_line(const std::string& text);

/// A word in single quotes of a POSIX shell.
std::string in_shell_quotes(std::string_view word);

/// How a program ended.
struct ExitStatus {
  int exit = 0;    ///< exit code
  int signal = 0;  ///< that killed it; 0: none

  /// "exit code 78" or "killed by signal 9".
  std::string str() const;
};

/// What a child may use. By default as much as this process.
struct ChildLimits {
  std::optional<std::uint64_t> file_size = {};  ///< bytes; writing more fails as on a full disk
  std::optional<std::uint64_t> memory = {};     ///< bytes of address space
  unsigned seconds = 0;                         ///< after which it is killed; 0: never
  bool unprivileged = false;                    ///< a child of root runs as nobody
};

struct ChildSetup {
  int in, out, err;          ///< descriptors that become its standard streams
  std::string program = {};  ///< the file to execute; empty: the first word, found in PATH
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< added to that of this one
  std::vector<int> cores = {};  ///< the only ones it runs on; empty: those of this process
  /// Signals that a terminal sends to this program do not reach it; it gets SIGTERM when the thread
  /// that started it is gone, however that ended.
  bool apart = false;
  std::filesystem::path directory = {};  ///< in which it begins; empty: that of this process
  ChildLimits limits = {};
};

/// A child process; no zombie remains of it. Destroying it kills it if it still runs.
class Child {
 public:
  /// Throws MissingInput with the command and the reason if it cannot be started.
  Child(const std::vector<std::string>& command, const ChildSetup& setup);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// How it ended, if it did; does not wait.
  const std::optional<ExitStatus>& poll();
  /// Waits for its end.
  const ExitStatus& wait();
  /// Sends a signal, unless it has ended.
  void signal(int number);
  pid_t id() const { return id_; }

 private:
  void reap(int options);

  pid_t id_ = 0;
  std::optional<ExitStatus> exit_status_;
};

}  // namespace difftape::system
