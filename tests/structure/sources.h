#pragma once
// The sources of the program, as texts.

#include <filesystem>
#include <string>
#include <vector>

namespace difftape::test {

/// A .h or .cpp below core/, autograd/, layers/, optim/ or train/.
struct Source {
  std::string path;  ///< relative to the root, "core/error.h"
  std::string text;

  bool is_header() const { return path.ends_with(".h"); }
};
const std::vector<Source>& program_sources();

}  // namespace difftape::test
