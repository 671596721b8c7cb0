#pragma once
// Reads files that may be larger than memory.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace difftape::system {

/// The bytes of a file, in memory or mapped.
class StoredBytes {
 public:
  /// Files of up to this many bytes are read into memory; larger ones are mapped and stay open.
  static constexpr std::size_t kInMemory = std::size_t{16} << 20;

  /// Throws MissingInput with the path and the reason.
  explicit StoredBytes(const std::filesystem::path& path, std::size_t in_memory = kInMemory);
  StoredBytes(StoredBytes&&) noexcept;
  ~StoredBytes();

  std::size_t size() const { return size_; }
  /// Returns the bytes [begin, begin + count), which must lie within the file. They are valid as
  /// long as this object; any thread may call. Throws DataError if the file has changed since it
  /// was opened. If the file is truncated while the bytes are in use, SIGBUS kills the process.
  std::string_view read(std::size_t begin, std::size_t count) const;
  std::string_view all() const { return read(0, size_); }
  /// Returns a copy of the same bytes. It throws DataError also if the file is truncated meanwhile.
  std::string copy(std::size_t begin, std::size_t count) const;

  /// Makes the file count as unchanged although its time of change is new, as after `touch`, if
  /// `are_same` accepts its bytes [begin, begin + count).
  void accept_if(std::size_t begin, std::size_t count,
                 std::function<bool(std::string_view)> are_same);

 private:
  struct Mapping;
  std::unique_ptr<Mapping> mapping_;  ///< null: bytes_ holds the whole file
  std::string bytes_;
  std::size_t size_ = 0;
};

}  // namespace difftape::system
