#include "train/run/config/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace difftape::run {

std::string SourceLocation::str() const {
  return line == 0 ? source : fmt::format("{}:{}:{}", source, line, column);
}

std::string SourceLocation::origin() const {
  if (source.empty()) return "default";
  return line == 0 ? source.substr(0, source.find(' ')) : fmt::format("{}:{}", source, line);
}

void ConfigErrors::add(const SourceLocation& location, const std::string& message) {
  std::string line = fmt::format("{}: error: {}", location.str(), message);
  if (std::find(lines_.begin(), lines_.end(), line) == lines_.end()) {
    lines_.push_back(std::move(line));
  }
}

void ConfigErrors::throw_if_any() const {
  if (any()) throw ConfigError(fmt::format("{}", fmt::join(lines_, "\n")));
}

}  // namespace difftape::run
