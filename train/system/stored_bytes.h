#pragma once
// The bytes of a file that may be larger than memory.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace difftape::system {

class StoredBytes {
 public:
  /// A file of up to so many bytes is read at once and kept; a larger one is mapped and stays open.
  static constexpr std::size_t kInMemory = std::size_t{16} << 20;

  /// Throws MissingInput with the path and the reason.
  explicit StoredBytes(const std::filesystem::path& path, std::size_t in_memory = kInMemory);
  StoredBytes(StoredBytes&&) noexcept;
  ~StoredBytes();

  std::size_t size() const { return size_; }
  /// Bytes [begin, begin + count), which must lie within the file, as long as this lives; from any
  /// thread. Throws DataError if the file changed since it was opened. A file must not become
  /// shorter while they are looked at: the process would be killed (SIGBUS).
  std::string_view read(std::size_t begin, std::size_t count) const;
  std::string_view all() const { return read(0, size_); }

 private:
  struct Mapping;
  std::unique_ptr<Mapping> mapping_;  ///< null: bytes_ has them all
  std::string bytes_;
  std::size_t size_ = 0;
};

}  // namespace difftape::system
