#include "train/system/shared.h"

namespace difftape::system {

namespace fs = std::filesystem;

namespace {

fs::path& shared_directory() {
  static fs::path directory;
  return directory;
}

}  // namespace

void set_shared_directory(const fs::path& fallback) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path installed = self.parent_path().parent_path() / "share" / "difftape";
  shared_directory() = !error && fs::is_directory(installed, error) ? installed : fallback;
}

std::string here_or_shared(const std::string& name, const fs::path& folder) {
  const std::string here = (folder / name).lexically_normal().string();
  std::error_code ignored;
  if (shared_directory().empty() || fs::path(name).is_absolute() || fs::exists(here, ignored)) {
    return here;
  }
  const fs::path shared = (shared_directory() / name).lexically_normal();
  return fs::exists(shared, ignored) ? shared.string() : here;
}

}  // namespace difftape::system
