#pragma once
// What a user can do wrong, as one exception family. Invariants of the library itself are asserted.

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace difftape {

/// Base of every error a user can cause. The message ends with the `NameScope`s that were open.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message);
};

/// An operation got operands of the wrong shape: states op, shapes and the rule.
struct ShapeError : Error {
  using Error::Error;
};
/// What a function was asked for does not exist or cannot be combined.
struct UsageError : Error {
  using Error::Error;
};
/// What was read cannot be used.
struct DataError : Error {
  using Error::Error;
};
/// Something to read is not there or cannot be read.
struct MissingInput : Error {
  using Error::Error;
};
/// Something cannot be written.
struct OutputError : Error {
  using Error::Error;
};
/// Settings that are out of range or contradict each other, one error a line.
struct ConfigError : Error {
  using Error::Error;
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
