#pragma once
// Child processes.

#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace difftape::system {

/// Returns everything written to a file so far, read from its beginning.
std::string contents_of(std::FILE* file);
/// Returns the last line that is not blank, without trailing whitespace.
std::string last_line(const std::string& text);

/// Quotes a word for a POSIX shell, in single quotes.
std::string in_shell_quotes(std::string_view word);
/// Joins the words of a command line for a shell, quoted if needed.
std::string shell_command(std::span<const std::string> words);

/// Exit status of a program.
struct ExitStatus {
  int exit = 0;    ///< exit code
  int signal = 0;  ///< the signal that killed it; 0: none

  /// Returns "exit code 78" or "killed by signal 9".
  std::string str() const;
};

/// Resource limits of a child. By default it may use as much as this process.
struct ChildLimits {
  std::optional<std::uint64_t> file_size = {};  ///< bytes; writing more fails as on a full disk
  std::optional<std::uint64_t> memory = {};     ///< bytes of address space
  unsigned seconds = 0;                         ///< the child is killed after these; 0: never
  bool unprivileged = false;                    ///< a child of root runs as nobody
};

struct ChildSetup {
  int in, out, err;          ///< descriptors that become its standard streams
  std::string program = {};  ///< the file to execute; empty: the first word, found in PATH
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< added to inherited ones
  std::vector<int> cores = {};  ///< the only cores it runs on; empty: inherited
  /// Signals from the terminal of this program do not reach the child. It gets SIGTERM when the
  /// thread that started it ends, for any reason.
  bool apart = false;
  std::filesystem::path directory = {};  ///< its working directory; empty: inherited
  ChildLimits limits = {};
};

/// A child process. The destructor kills it if it still runs, and reaps it.
class Child {
 public:
  /// Throws MissingInput with the command and the reason if it cannot be started.
  Child(const std::vector<std::string>& command, const ChildSetup& setup);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Returns the exit status if the child has ended; does not wait.
  const std::optional<ExitStatus>& poll();
  /// Waits until the child ends.
  const ExitStatus& wait();
  /// Sends a signal unless the child has ended.
  void signal(int number);
  pid_t id() const { return id_; }

 private:
  void reap(int options);

  pid_t id_ = 0;
  std::optional<ExitStatus> exit_status_;
};

}  // namespace difftape::system
