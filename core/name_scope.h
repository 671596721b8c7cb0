#pragma once
// The part of a program that an error, a tape node or a profile event belongs to.

#include <string_view>

namespace difftape {

/// Names the running code, for example a layer, while it lives: in errors (`in <name>`), tape nodes
/// and profile events. The name must outlive the scope. Scopes of one thread nest.
class NameScope {
 public:
  explicit NameScope(std::string_view name) : name_(name), outer_(innermost_) { innermost_ = this; }
  ~NameScope() { innermost_ = outer_; }
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;

  /// Returns the innermost open name of this thread, or "".
  static std::string_view current() { return innermost_ ? innermost_->name_ : std::string_view{}; }

 private:
  static inline constinit thread_local NameScope* innermost_ = nullptr;
  std::string_view name_;
  NameScope* outer_;
};

}  // namespace difftape
