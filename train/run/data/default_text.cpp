// The place of the Eigen headers, which the build compiles into this file alone.
#include "core/error.h"
#include "train/run/data/sources.h"

namespace difftape::run {

std::vector<std::string> default_text() {
  const std::filesystem::path headers = DIFFTAPE_EIGEN_HEADERS;
  for (const char* part : {"Eigen", "unsupported"}) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(headers / part, ignored)) {
      throw MissingInput(fmt::format(
          "the default text, the headers of Eigen, is not on this machine: no directory {}; set "
          "data.path or install libeigen3-dev",
          (headers / part).string()));
    }
  }
  return {headers / "Eigen", headers / "unsupported"};
}

}  // namespace difftape::run
