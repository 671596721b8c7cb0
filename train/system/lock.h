#pragma once
// One process at a time in a directory.

#include <filesystem>
#include <memory>

namespace difftape::system {

/// Holds `<dir>/lock` for as long as it lives. The operating system frees it however the process
/// ends.
class DirectoryLock {
 public:
  /// Throws OutputError if another process holds it or the file cannot be made.
  explicit DirectoryLock(const std::filesystem::path& dir);

 private:
  struct Close {
    void operator()(const int* descriptor) const;
  };
  std::unique_ptr<int, Close> descriptor_;
};

}  // namespace difftape::system
