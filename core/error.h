#pragma once
// What a user can do wrong, as one exception family. Invariants of the library itself are asserted.

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace difftape {

/// The process exit codes (sysexits where one fits). Scripts depend on them.
enum class Exit : int {
  ok = 0,
  check_failed = 1,    ///< a check ran and failed, for example gradcheck
  usage = 64,          ///< wrong command line
  bad_data = 65,       ///< data or a checkpoint that cannot be used
  missing_input = 66,  ///< an input file that is not there or cannot be read
  cannot_write = 74,   ///< an output that cannot be written
  stopped_early = 75,  ///< stopped before the end, resumable
  config = 78,         ///< an error in the configuration
  diverged = 86,       ///< training diverged; recorded as a result
  sigint = 130,
  sigterm = 143,
};

/// Base of every error a user can cause. The message ends with the `NameScope`s that were open.
class Error : public std::runtime_error {
 public:
  Error(Exit exit, const std::string& message);
  Exit exit() const { return exit_; }

 private:
  Exit exit_;
};

/// An operation got operands of the wrong shape: states op, shapes and the rule.
struct ShapeError : Error {
  explicit ShapeError(const std::string& message) : Error(Exit::bad_data, message) {}
};
struct UsageError : Error {
  explicit UsageError(const std::string& message) : Error(Exit::usage, message) {}
};
struct DataError : Error {
  explicit DataError(const std::string& message) : Error(Exit::bad_data, message) {}
};
struct MissingInput : Error {
  explicit MissingInput(const std::string& message) : Error(Exit::missing_input, message) {}
};
struct OutputError : Error {
  explicit OutputError(const std::string& message) : Error(Exit::cannot_write, message) {}
};
/// One or more configuration errors, one a line, each `file:line:col: error: ...`.
struct ConfigError : Error {
  explicit ConfigError(const std::string& message) : Error(Exit::config, message) {}
};

/// Throws ShapeError("<op>: <message>") unless `holds`; the message is formatted only then.
template <class... Args>
void require_shape(bool holds, std::string_view op, fmt::format_string<Args...> message,
                   Args&&... args) {
  if (!holds) {
    throw ShapeError(fmt::format("{}: {}", op, fmt::format(message, std::forward<Args>(args)...)));
  }
}

/// Names what runs, for example a layer, for as long as it lives: errors thrown meanwhile end with
/// `in <name>`, tape nodes recorded meanwhile carry it, and so do events of a profile.
/// The name must outlive the scope. Scopes of one thread nest.
class NameScope {
 public:
  explicit NameScope(std::string_view name);
  ~NameScope();
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;

  /// Name of the innermost open scope of this thread, empty if there is none.
  static std::string_view current();

 private:
  std::string_view name_;
  NameScope* outer_;
};

}  // namespace difftape
