#pragma once
// The sources of the program, as strings.

#include "tests/support/test.h"

namespace difftape::test {

/// A .h or .cpp.
struct Source {
  std::string path;  ///< relative to the root, "core/error.h"
  std::string text;

  bool is_header() const { return path.ends_with(".h"); }
};
/// Returns the sources below folders of the root.
std::vector<Source> sources_below(const std::vector<std::string>& folders);
/// Returns the sources below core/, autograd/, layers/, optim/ and train/.
const std::vector<Source>& program_sources();

}  // namespace difftape::test
