#pragma once
// Which part of a program an error, a tape node or an event of a profile belongs to.

#include <string_view>

namespace difftape {

/// Names what runs, for example a layer, for as long as it lives: errors thrown meanwhile end with
/// `in <name>`, tape nodes recorded meanwhile carry it, and so do events of a profile.
/// The name must outlive the scope. Scopes of one thread nest.
class NameScope {
 public:
  explicit NameScope(std::string_view name) : name_(name), outer_(innermost_) {
    innermost_ = this;
  }
  ~NameScope() { innermost_ = outer_; }
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;

  /// Returns the name of the innermost open scope of this thread, empty if there is none.
  static std::string_view current() {
    return innermost_ ? innermost_->name_ : std::string_view{};
  }

 private:
  static inline constinit thread_local NameScope* innermost_ = nullptr;
  std::string_view name_;
  NameScope* outer_;
};

}  // namespace difftape
