#pragma once
// One exception family for errors that a user can cause. Invariants of the library are asserted.

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace difftape {

/// Base of every error a user can cause. The message ends with the innermost open NameScope
/// (core/name_scope.h).
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message);
};

/// Operands have the wrong shapes. The message states the op, the shapes and the rule.
struct ShapeError : Error {
  using Error::Error;
};
/// A request for something that does not exist or cannot be combined.
struct UsageError : Error {
  using Error::Error;
};
/// Unusable input data.
struct DataError : Error {
  using Error::Error;
};
/// Input that is missing or unreadable.
struct MissingInput : Error {
  using Error::Error;
};
/// Output that cannot be written.
struct OutputError : Error {
  using Error::Error;
};
/// Settings that are out of range or contradict each other, one error per line.
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

/// Throws an `Error` of this type if something is `wrong`; the message is formatted only then.
template <class E, class... Args>
void throw_if(bool wrong, fmt::format_string<Args...> message, Args&&... args) {
  if (wrong) throw E(fmt::format(message, std::forward<Args>(args)...));
}

}  // namespace difftape
