#pragma once
// Recognizes files of other programs by their first bytes.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace difftape::system {

enum class FileFormat : std::uint8_t {
  numpy,
  hdf5,
  compressed,  ///< zip (.npz, .pt), gzip, bzip2, xz or zstd
  lfs_pointer,
  html,
  json_lines,
  json_records,  ///< a JSON list of objects
  other,         ///< a binary file that is of no use here
};

/// A recognized file.
struct FileKind {
  FileFormat format;
  const char* name;    ///< "a gzip file"
  const char* remedy;  ///< "unpack it with gunzip"
};

/// Number of bytes at the beginning of a file that recognize() looks at.
inline constexpr std::size_t kHeadBytes = std::size_t{64} << 10;

/// Recognizes the file `path` by its first bytes `head`, kHeadBytes or the whole file, and JSON
/// lines also by its extension in any letter case.
std::optional<FileKind> recognize(const std::filesystem::path& path, std::string_view head);

/// Throws DataError "PATH: is KIND, but must be NEED; REMEDY".
[[noreturn]] void refuse(const std::filesystem::path& path, const FileKind& kind,
                         std::string_view need);

}  // namespace difftape::system
