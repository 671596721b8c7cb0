#pragma once
// Counts occurrences in a string.

#include <cstddef>
#include <string>

namespace difftape::test {

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
  return found;
}

}  // namespace difftape::test
