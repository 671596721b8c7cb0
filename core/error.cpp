#include "core/error.h"

#include "core/name_scope.h"

namespace difftape {

namespace {
std::string with_scope(const std::string& message) {
  const std::string_view scope = NameScope::current();
  return scope.empty() ? message : fmt::format("{}\nin {}", message, scope);
}
}  // namespace

Error::Error(const std::string& message) : std::runtime_error(with_scope(message)) {}

}  // namespace difftape
