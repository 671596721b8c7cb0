#include "core/error.h"

namespace difftape {

namespace {
thread_local NameScope* innermost = nullptr;

std::string with_scope(const std::string& message) {
  const std::string_view scope = NameScope::current();
  return scope.empty() ? message : fmt::format("{}\nin {}", message, scope);
}
}  // namespace

Error::Error(const std::string& message) : std::runtime_error(with_scope(message)) {}

NameScope::NameScope(std::string_view name) : name_(name), outer_(innermost) { innermost = this; }

NameScope::~NameScope() { innermost = outer_; }

std::string_view NameScope::current() { return innermost ? innermost->name_ : std::string_view{}; }

}  // namespace difftape
