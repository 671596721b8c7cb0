#include <unistd.h>

#include <cstdlib>

#include "train/app/commands.h"

namespace {

/// Threads that wait for work spin before they sleep. The default of libgomp is so long that any
/// other busy program slows training many times; it is read before main, hence the new start.
void limit_spinning(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  if (setenv("GOMP_SPINCOUNT", "10000", 1) == 0) execv("/proc/self/exe", argv);
}

}  // namespace

int main(int argc, char** argv) {
  limit_spinning(argv);
  return difftape::app::run(argc, argv);
}
