#include "core/build_info.h"

#include <Eigen/Core>

#include "core/real.h"
#include "generated/commit.h"

namespace difftape {

namespace {
std::string compiler() {
#ifdef __clang__
  return std::string("Clang ") + __clang_version__;
#else
  return std::string("GCC ") + __VERSION__;
#endif
}
}  // namespace

BuildInfo build_info() {
  return {DIFFTAPE_VERSION,    DIFFTAPE_COMMIT, compiler(),
          DIFFTAPE_BUILD_TYPE, kRealName,       Eigen::SimdInstructionSetsInUse()};
}

}  // namespace difftape
