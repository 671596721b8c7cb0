#include "tests/structure/sources.h"

namespace difftape::test {

std::vector<Source> sources_below(const std::vector<std::string>& folders) {
  const fs::path root = DIFFTAPE_TEST_SOURCE_DIR;
  std::vector<Source> all;
  for (const std::string& folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".cpp" && extension != ".h") continue;
      std::stringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      all.push_back({fs::relative(entry.path(), root), text.str()});
    }
  }
  return all;
}

const std::vector<Source>& program_sources() {
  static const std::vector<Source> sources =
      sources_below({"core", "autograd", "layers", "optim", "train"});
  return sources;
}

}  // namespace difftape::test
