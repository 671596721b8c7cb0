#pragma once
// The bytes of a file that may be larger than memory, read where they are needed.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace difftape::system {

class StoredBytes {
 public:
  /// A file of up to so many bytes is read at once and kept; a larger one stays open.
  static constexpr std::size_t kInMemory = std::size_t{16} << 20;

  /// Throws MissingInput with the path and the reason.
  explicit StoredBytes(const std::filesystem::path& path, std::size_t in_memory = kInMemory);
  /// Bytes that are in memory already.
  static StoredBytes of(std::string bytes);
  StoredBytes(StoredBytes&&) noexcept;
  ~StoredBytes();

  std::size_t size() const { return size_; }
  /// Bytes [begin, begin + into.size()), which must lie within the file; from any thread. Throws
  /// DataError if the file changed since it was opened, MissingInput if it cannot be read.
  void read(std::size_t begin, std::span<std::byte> into) const;

 private:
  StoredBytes();
  struct OpenFile;
  std::unique_ptr<OpenFile> file_;  ///< null: bytes_ has them all
  std::string bytes_;
  std::size_t size_ = 0;
};

}  // namespace difftape::system
