#include "train/system/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/error.h"

namespace difftape::system {

void DirectoryLock::Close::operator()(const int* descriptor) const {
  close(*descriptor);
  delete descriptor;
}

DirectoryLock::DirectoryLock(const std::filesystem::path& dir) {
  const std::filesystem::path path = dir / "lock";
  const int opened = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (opened < 0) {
    throw OutputError(
        fmt::format("cannot write {}: {}", path.string(), std::generic_category().message(errno)));
  }
  descriptor_.reset(new int(opened));
  if (flock(opened, LOCK_EX | LOCK_NB) != 0) {
    throw OutputError(fmt::format(
        "{}: another process is training here; wait for it, or choose another directory with --out",
        dir.string()));
  }
}

}  // namespace difftape::system
